// What is picked in a list, and where a key leads in it, without a DOM.
export class Picks {
  #picked = new Set();
  #last = ""; // the one that was picked or put back last

  get size() {
    return this.#picked.size;
  }

  has(value) {
    return this.#picked.has(value);
  }

  // set picks a value, or puts it back. With range, so it does with all between it and the last one in shown.
  set(shown, value, on, range) {
    const [from, to] = [shown.indexOf(this.#last), shown.indexOf(value)];
    const values = range && from >= 0 && to >= 0 ? shown.slice(Math.min(from, to), Math.max(from, to) + 1) : [value];
    for (const one of values) {
      if (on) this.#picked.add(one);
      else this.#picked.delete(one);
    }
    this.#last = value;
  }

  // keep forgets what does not show any more: nobody acts on what they do not see.
  keep(shown) {
    for (const value of this.#picked) if (!shown.includes(value)) this.#picked.delete(value);
  }

  clear() {
    this.#picked.clear();
    this.#last = "";
  }
}

// step gives the place that a key leads to from a place in a list of that length; from outside of it (-1) to its nearest end. -1 is none.
export function step(key, at, length) {
  if (length === 0) return -1;
  const down = key === "j" || key === "ArrowDown";
  if (at < 0) return down ? 0 : length - 1;
  return Math.min(Math.max(at + (down ? 1 : -1), 0), length - 1);
}
