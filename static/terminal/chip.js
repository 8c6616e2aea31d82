// A short message in a corner of the terminal, which leaves by itself.
import { h } from "../js/dom.js";

const brief = 1600; // ms, for a word such as "Copied"
const long = 7000; // ms, for a sentence

export class Chip {
  #timer = 0;

  constructor(parent) {
    this.element = h("div", { class: "terminal-chip", role: "status" });
    parent.append(this.element);
  }

  show(text) {
    clearTimeout(this.#timer);
    this.element.textContent = text;
    this.element.classList.add("shown");
    this.#timer = setTimeout(() => this.dispose(), text.length > 20 ? long : brief);
  }

  dispose() {
    clearTimeout(this.#timer);
    this.element.classList.remove("shown");
    this.element.textContent = "";
  }
}
