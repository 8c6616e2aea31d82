// The mouse over a terminal's screen: tells when a person has selected something, and when a program has the mouse instead.
import { isMac } from "../js/dom.js";

const slack = 8; // px that a click may move

export const selectsBy = isMac ? "Option+drag" : "Shift+drag";

// watchMouse takes the element and the xterm.js terminal in it. selected() is called after a selection was made, taken() when a
// person drags while a program has the mouse, above(press, held) when a selection is dragged above the screen; press is
// where it began, and held() says whether the button is still down and where the pointer is.
export function watchMouse(place, screen, { selected, taken, above }, signal) {
  place.addEventListener("mousedown", (event) => {
    if (event.button !== 0) return;
    const program = screen.modes.mouseTrackingMode !== "none" && !(isMac ? event.altKey : event.shiftKey);
    new Press(event, place, screen, program ? { taken } : { selected, above });
  }, { capture: true, signal });
}

class Press {
  #over = new AbortController();
  #changed = false;

  constructor(event, place, screen, { selected, taken, above }) {
    Object.assign(this, { from: event, at: event, top: place.getBoundingClientRect().top, screen, selected, taken, above });
    const { signal } = this.#over;
    const changes = screen.onSelectionChange(() => { this.#changed = true; });
    signal.addEventListener("abort", () => changes.dispose());
    window.addEventListener("mousemove", (move) => this.#moved(move), { capture: true, signal }); // xterm.js keeps them to itself while it selects
    window.addEventListener("mouseup", () => this.#ended(), { signal }); // after xterm.js's own, which is the document's
    window.addEventListener("mousedown", (next) => next !== event && this.#over.abort(), { capture: true, signal }); // a release that was missed
  }

  #moved(event) {
    this.at = event;
    const far = Math.hypot(event.clientX - this.from.clientX, event.clientY - this.from.clientY) > slack;
    if (far) this.#once("taken");
    if (far && event.clientY < this.top) this.#once("above", this.from, () => (this.#over.signal.aborted ? null : this.at));
  }

  #ended() {
    this.#over.abort();
    if (this.#changed && this.screen.hasSelection()) this.selected?.();
  }

  #once(what, ...args) {
    this[what]?.(...args);
    this[what] = null;
  }
}
