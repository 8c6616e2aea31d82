// PathBar is the address bar of the tree. It completes folders.
import { h } from "../js/dom.js";
import { debounce } from "../js/timers.js";
import { nameElement } from "./names.js";
import { decodeText, encodePath, isText, join, tidy } from "./paths.js";

const pause = 120; // ms after the last key
const most = 50; // suggestions

// split splits the typed text into the folder to list and the prefix of a name.
export function split(text, home) {
  const cut = text.lastIndexOf("/");
  const folder = text === "~" || cut < 0 ? (text === "~" ? "~" : "") : text.slice(0, cut) || "/";
  return { folder: encodePath(folder || "~", home), begin: text === "~" ? "" : text.slice(cut + 1).toLowerCase() };
}

// fitting returns the entries that complete a prefix.
export function fitting(entries, begin) {
  return entries.filter((e) => e.name.toLowerCase().startsWith(begin) && (begin || !e.name.startsWith("."))).slice(0, most);
}

export class PathBar {
  #known = new Map(); // folder → promise of its entries, while focused
  #shown = [];
  #at = -1;
  #asked = 0;

  // owner: {files, home, go(path) → promise of an error message or ""}
  constructor(owner) {
    this.owner = owner;
    const id = `path-${Math.random().toString(36).slice(2, 8)}`;
    this.field = h("input", {
      class: "path-field", type: "text", spellcheck: "false", autocapitalize: "off", autocomplete: "off", enterkeyhint: "go", "aria-label": "Go to a folder or file",
      role: "combobox", "aria-expanded": "false", "aria-controls": id, "aria-autocomplete": "list", title: "A path in the sandbox",
    });
    this.options = h("div", { class: "path-options", id, role: "listbox", "aria-label": "Folders", hidden: true });
    this.fault = h("p", { class: "path-fault", role: "alert", hidden: true });
    this.element = h("div", { class: "path-bar" }, this.field, this.options, this.fault);
    this.soon = debounce(() => this.#suggest(), pause);
    this.#listen();
  }

  show(path) {
    this.path = path;
    if (document.activeElement !== this.field) this.#reset();
  }

  #reset() {
    this.field.value = isText(this.path) ? tidy(this.path, this.owner.home, this.owner.whole) : decodeText(this.path);
    this.field.scrollLeft = this.field.scrollWidth;
  }

  #listen() {
    this.field.addEventListener("focus", () => {
      this.#known.clear();
      this.field.select();
    });
    this.field.addEventListener("blur", () => {
      this.#close();
      this.soon.cancel();
      this.#reset();
      setTimeout(() => (this.fault.hidden = true), 4000);
    });
    this.field.addEventListener("input", () => {
      this.fault.hidden = true;
      this.soon();
    });
    this.field.addEventListener("keydown", (event) => this.#key(event));
    this.options.addEventListener("pointerdown", (event) => {
      event.preventDefault(); // keeps the focus in the field
      const i = [...this.options.children].indexOf(event.target.closest("[role=option]"));
      if (i >= 0) this.#take(i, true);
    });
  }

  #key(event) {
    event.stopPropagation();
    if (event.isComposing) return;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && this.#shown.length) this.#mark((this.#at + step + this.#shown.length + (this.#at < 0 && step < 0 ? 1 : 0)) % this.#shown.length);
    else if (event.key === "ArrowDown") this.#suggest();
    else if (event.key === "Tab" && !event.shiftKey && this.#shown.length && !this.options.hidden) this.#take(Math.max(this.#at, 0), false);
    else if (event.key === "Enter") this.#at >= 0 ? this.#take(this.#at, true) : this.#go(encodePath(this.field.value.trim() || "~", this.owner.home));
    else if (event.key === "Escape") this.options.hidden ? this.field.blur() : this.#close();
    else return;
    event.preventDefault();
  }

  async #suggest() {
    const { folder, begin } = split(this.field.value.trimStart(), this.owner.home);
    const asked = ++this.#asked;
    if (!this.#known.has(folder)) {
      this.#known.set(folder, this.owner.files.list(folder).then((page) => page.entries, () => []));
    }
    const entries = await this.#known.get(folder);
    if (asked !== this.#asked || document.activeElement !== this.field) return;
    const folders = entries.filter((e) => e.type === "folder" || e.target_type === "folder");
    this.#shown = fitting([...folders, ...entries.filter((e) => !folders.includes(e))], begin).map((e) => ({ ...e, path: join(folder, e.key), into: folders.includes(e) }));
    this.#at = -1;
    this.#draw();
  }

  #draw() {
    this.options.replaceChildren(...this.#shown.map((e, i) => h("div", { class: "path-option", role: "option", id: `${this.options.id}-${i}`, "aria-selected": "false" }, nameElement(e.key), e.into ? "/" : "")));
    this.options.hidden = !this.#shown.length;
    this.field.setAttribute("aria-expanded", String(!this.options.hidden));
    this.field.removeAttribute("aria-activedescendant");
  }

  #mark(i) {
    this.#at = i;
    [...this.options.children].forEach((o, n) => o.setAttribute("aria-selected", String(n === i)));
    this.options.children[i].scrollIntoView({ block: "nearest" });
    this.field.setAttribute("aria-activedescendant", `${this.options.id}-${i}`);
  }

  // #take completes the field, or goes to the suggestion.
  #take(i, go) {
    const { path, into } = this.#shown[i];
    if (go || !isText(path)) return this.#go(path);
    this.field.value = tidy(path, this.owner.home, this.owner.whole) + (into ? "/" : "");
    this.#close();
    if (into) this.#suggest();
  }

  async #go(path) {
    this.#close();
    this.field.setAttribute("aria-busy", "true");
    const fault = await this.owner.go(path);
    this.field.removeAttribute("aria-busy");
    this.fault.textContent = fault;
    this.fault.hidden = !fault;
    if (!fault && document.activeElement === this.field) this.field.blur();
  }

  #close() {
    this.#asked++;
    this.#shown = [];
    this.#at = -1;
    this.options.hidden = true;
    this.field.setAttribute("aria-expanded", "false");
  }
}
