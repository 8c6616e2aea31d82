// Attention tells whether somebody looks at a page, rather than having forgotten it: the page has the focus, can be seen,
// and a hand has moved something on it lately. No terminal in here.
const awakeFor = 10 * 60_000; // ms after the last movement during which somebody is taken to be there
const noteEvery = 60_000; // ms between two notes at least

const movements = ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"];

// isWatched says whether a page whose last movement was at moved is being looked at.
export function isWatched(page, moved, now) {
  return page.visibilityState === "visible" && page.hasFocus() && now - moved <= awakeFor;
}

export class Attention {
  #page;
  #note;
  #moved = -Infinity; // opening a page is no movement: a browser opens all pages of yesterday by itself
  #noted = -Infinity;

  // note() is called while somebody looks, once a minute at most, until signal.
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
