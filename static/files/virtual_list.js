// VirtualList draws the rows of a long list that can be seen, and a few around them. All rows have one height.
const spare = 8; // rows drawn beyond each end

// window gives the rows to draw: from the first to before the last.
export function windowOf(top, height, rowHeight, count) {
  const first = Math.max(0, Math.floor(top / rowHeight) - spare);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + spare);
  return [Math.min(first, last), last];
}

// reorder puts elements into a place in their order, which is the one that they are read in. The place holds no others, and
// what is in order already is not touched: moving would take the focus from it.
export function reorder(place, elements) {
  let at = place.firstChild;
  for (const element of elements) {
    if (element !== at && at && element === at.nextSibling) at = element; // what was here comes later
    if (element === at) at = at.nextSibling;
    else place.insertBefore(element, at);
  }
}

export class VirtualList {
  #rows = [];
  #shown = new Map(); // key → {element, row, version}
  #frame = 0;

  // scroller scrolls; canvas in it holds the rows. key(row) is a row's name, make(row) its element, and version(row) a text
  // that changes when the element must be made anew. place(element, i) is told where it stands.
  constructor(scroller, canvas, { key, make, version, place = () => {} }) {
    Object.assign(this, { scroller, canvas, key, make, version, place });
    this.away = new AbortController();
    scroller.addEventListener("scroll", () => this.soon(), { passive: true, signal: this.away.signal });
    this.resized = new ResizeObserver(() => this.soon());
    this.resized.observe(scroller);
  }

  end() {
    this.away.abort();
    this.resized.disconnect();
    cancelAnimationFrame(this.#frame);
  }

  // rowHeight is the style's --row, in pixels.
  get rowHeight() {
    this.height ??= parseFloat(getComputedStyle(this.canvas).getPropertyValue("line-height")) || 24;
    return this.height;
  }

  show(rows) {
    this.#rows = rows;
    this.canvas.style.height = `${rows.length * this.rowHeight}px`;
    this.draw();
  }

  soon() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.draw();
    });
  }

  // top is where the rows begin within what scrolls.
  get top() {
    return this.canvas.offsetTop;
  }

  draw() {
    const height = this.rowHeight;
    const [first, last] = windowOf(this.scroller.scrollTop - this.top, this.scroller.clientHeight, height, this.#rows.length);
    const kept = new Map();
    for (let i = first; i < last; i++) {
      const row = this.#rows[i];
      const key = this.key(row);
      const version = this.version(row);
      let shown = this.#shown.get(key);
      if (!shown || shown.version !== version || shown.row !== row) {
        const element = this.make(row);
        shown?.element.remove();
        shown = { element, row, version };
      }
      shown.element.style.transform = `translateY(${i * height}px)`;
      this.place(shown.element, i);
      kept.set(key, shown);
      this.#shown.delete(key);
    }
    for (const gone of this.#shown.values()) gone.element.remove();
    this.#shown = kept;
    reorder(this.canvas, [...kept.values()].map((shown) => shown.element));
  }

  // element gives a row's element while it is drawn.
  element(key) {
    return this.#shown.get(key)?.element ?? null;
  }

  // redraw makes a row's element anew.
  redraw(key) {
    const shown = this.#shown.get(key);
    if (!shown) return;
    shown.version = null;
    this.draw();
  }

  // bring scrolls so that the row at i can be seen.
  scrollTo(i, align = "nearest") {
    const height = this.rowHeight;
    const top = this.top + i * height;
    const s = this.scroller;
    if (align === "center") s.scrollTop = top - (s.clientHeight - height) / 2;
    else if (top < s.scrollTop) s.scrollTop = top;
    else if (top + height > s.scrollTop + s.clientHeight) s.scrollTop = top + height - s.clientHeight;
    this.draw();
  }

  // perPage is how many rows fit.
  get perPage() {
    return Math.max(1, Math.floor(this.scroller.clientHeight / this.rowHeight) - 1);
  }
}
