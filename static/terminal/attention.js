// Detects whether a user is looking at the page: it is visible, has the focus, and had input recently. No terminal in here.
const awakeFor = 10 * 60_000; // ms after the last input in which the user counts as present
const noteEvery = 60_000; // ms; the least time between two reports

const movements = ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"];

// isWatched says whether a user is looking at a page whose last input was at moved.
export function isWatched(page, moved, now) {
  return page.visibilityState === "visible" && page.hasFocus() && now - moved <= awakeFor;
}

export class Attention {
  #page;
  #note;
  #moved = -Infinity; // opening a page is not input: browsers restore yesterday's pages by themselves
  #noted = -Infinity;

  // note() is called while a user is looking, at most once a minute, until signal aborts.
  constructor(page, note, signal) {
    this.#page = page;
    this.#note = note;
    for (const kind of movements) page.addEventListener(kind, () => this.#move(), { capture: true, passive: true, signal });
    const timer = setInterval(() => this.#look(), noteEvery);
    signal.addEventListener("abort", () => clearInterval(timer));
  }

  #move() {
    this.#moved = Date.now();
    this.#look();
  }

  #look() {
    const now = Date.now();
    if (now - this.#noted < noteEvery || !isWatched(this.#page, this.#moved, now)) return;
    this.#noted = now;
    this.#note();
  }
}
