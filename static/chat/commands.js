// The commands that an agent offers, as a list to choose from while a message begins with "/". The message is the combobox of the list.
import { h } from "../js/dom.js";
import { shown } from "./model.js";

const id = "chat-commands";

// matching gives the commands that a text may become: all of them after "/", and none once there is a space.
export function matching(commands, text) {
  const word = /^\/(\S*)$/.exec(text)?.[1].toLowerCase();
  return word === undefined ? [] : commands.filter((c) => c.name.toLowerCase().startsWith(word));
}

export class Commands {
  #all = [];
  #found = [];
  #at = 0;
  #closed = false; // by the person, until the message begins with another word

  // text is where a message is written. changed() is called when a command was put there.
  constructor(text, changed) {
    Object.assign(this, { text, changed });
    this.element = h("ul", { class: "chat-commands", id, role: "listbox", "aria-label": "Commands of the agent", mousedown: (event) => event.preventDefault() }); // the focus stays in the text
    this.element.hidden = true;
    text.addEventListener("input", () => this.look());
    text.addEventListener("blur", () => this.#draw([]));
  }

  // offer says what there is.
  offer(commands) {
    if (JSON.stringify(commands) === JSON.stringify(this.#all)) return;
    this.#all = commands;
    const states = { role: "combobox", "aria-autocomplete": "list", "aria-haspopup": "listbox", "aria-controls": id, "aria-expanded": "false" };
    for (const [name, value] of Object.entries(states)) commands.length ? this.text.setAttribute(name, value) : this.text.removeAttribute(name);
    if (!this.element.hidden || !commands.length) this.look();
  }

  get any() {
    return this.#all.length > 0;
  }

  // look shows the list if what is written can become a command.
  look() {
    if (!/^\/\S*$/.test(this.text.value)) this.#closed = false;
    this.#draw(this.#closed ? [] : matching(this.#all, this.text.value));
  }

  // key takes a key for the list, and tells whether it did. Enter after a whole name is left to the message.
  key({ key, shiftKey, isComposing }) {
    const n = this.#found.length;
    if (!n || isComposing) return false;
    const step = { ArrowDown: 1, ArrowUp: n - 1 }[key];
    if (step) this.#mark((this.#at + step) % n);
    else if (key === "Escape") this.#close();
    else if ((key === "Tab" || key === "Enter") && !shiftKey && !(key === "Enter" && this.text.value === `/${this.#found[this.#at].name}`)) this.#choose(this.#at);
    else return false;
    return true;
  }

  #close() {
    this.#closed = true;
    this.#draw([]);
  }

  #choose(i) {
    this.text.value = `/${this.#found[i].name} `;
    this.#draw([]);
    this.text.focus();
    this.changed();
  }

  #draw(found) {
    this.#found = found;
    this.element.replaceChildren(...found.map((c, i) => h("li", { id: `${id}-${i}`, role: "option", click: () => this.#choose(i) }, h("span", { class: "mono" }, `/${shown(c.name)}`), c.about && h("span", { class: "quiet clip" }, shown(c.about)))));
    this.element.hidden = !found.length;
    if (this.#all.length) this.text.setAttribute("aria-expanded", String(found.length > 0));
    if (found.length) this.#mark(0);
    else this.text.removeAttribute("aria-activedescendant");
  }

  #mark(at) {
    this.#at = at;
    [...this.element.children].forEach((o, i) => o.setAttribute("aria-selected", String(i === at)));
    this.element.children[at].scrollIntoView({ block: "nearest" });
    this.text.setAttribute("aria-activedescendant", `${id}-${at}`);
  }
}
