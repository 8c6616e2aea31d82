// VirtualList draws only the visible rows of a long list, and a few around them. All rows have the same height.
const spare = 8; // rows beyond each end

// windowOf returns the range of rows to draw, [first, end).
export function windowOf(top, height, rowHeight, count) {
  const first = Math.max(0, Math.floor(top / rowHeight) - spare);
  const last = Math.min(count, Math.ceil((top + height) / rowHeight) + spare);
  return [Math.min(first, last), last];
}

// reorder brings the children of place into this order, which screen readers follow. Elements already in order are not
// moved, because moving loses the focus.
export function reorder(place, elements) {
  let at = place.firstChild;
  for (const element of elements) {
    if (element !== at && at && element === at.nextSibling) at = element; // the current one comes later
    if (element === at) at = at.nextSibling;
    else place.insertBefore(element, at);
  }
}

export class VirtualList {
  #rows = [];
  #shown = new Map(); // key → {element, row, version}
  #frame = 0;

  // scroller scrolls; canvas inside it holds the rows. key(row) identifies a row, make(row) creates its element,
  // version(row) changes when that is outdated, and place(element, i) updates its index.
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

  // top is the offset of the rows in the scroller.
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

  // element returns a row's element if it is drawn.
  element(key) {
    return this.#shown.get(key)?.element ?? null;
  }

  // redraw recreates a row's element.
  redraw(key) {
    const shown = this.#shown.get(key);
    if (!shown) return;
    shown.version = null;
    this.draw();
  }

  // scrollTo scrolls to row i.
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
