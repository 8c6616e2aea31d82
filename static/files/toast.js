// Toast says for a while what has happened, with one thing to do about it.
import { h, icon } from "./dom.js";

const least = 6000; // ms
const reading = 90; // ms for a character

export class Toast {
  #timer = 0;
  #before = null; // what had the focus before something in here

  // back() takes the focus when nothing else can.
  constructor(back = () => {}) {
    this.back = back;
    this.element = h("div", { class: "files-toast", role: "status", hidden: true });
    for (const kind of ["pointerenter", "focusin"]) this.element.addEventListener(kind, () => clearTimeout(this.#timer));
    this.element.addEventListener("focusin", (event) => {
      if (!this.element.contains(event.relatedTarget)) this.#before = event.relatedTarget;
    });
    for (const kind of ["pointerleave", "focusout"]) this.element.addEventListener(kind, () => this.#soon());
  }

  show(text, act, bad) {
    const press = act && h("button", { type: "button", class: "link", click: () => {
      this.hide();
      act.act();
    } }, act.text);
    const close = h("button", { type: "button", class: "toast-close", "aria-label": "Close", click: () => this.hide() }, icon("close"));
    this.#leave();
    this.element.replaceChildren(...[bad && icon("warn"), h("span", {}, text), press, close].filter(Boolean));
    this.element.classList.toggle("bad", Boolean(bad));
    this.element.hidden = false;
    this.length = Math.max(least, text.length * reading) + (act ? 3000 : 0);
    this.#soon();
  }

  #soon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.hide(), this.length);
  }

  hide() {
    this.#leave();
    clearTimeout(this.#timer);
    this.element.hidden = true;
  }

  // #leave gives the focus back before what has it is gone.
  #leave() {
    if (!this.element.contains(document.activeElement)) return;
    if (this.#before?.isConnected && this.#before.checkVisibility()) this.#before.focus({ preventScroll: true });
    else this.back();
  }
}
