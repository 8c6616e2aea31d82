// The scrollback of a terminal as an overlay, while the program runs on. With tmux only the sandbox has the scrollback, else
// xterm.js has. It is for selecting and searching by keyboard; or, when the mouse has opened it, a view: it covers the screen
// exactly, the terminal keeps the focus, and scrolling down to its end or typing closes it.
import { copy } from "../js/clipboard.js";
import { h } from "../js/dom.js";
import { toggleMark, press, selection, start } from "./caret.js";
import { FindBar } from "./find_bar.js";
import { watchMouse } from "./mouse.js";
import { coloursOnly } from "./sequences.js";

const mostRows = 50_000;
const afterTerminal = 100; // ms; by then the terminal has another size

export class Scrollback {
  #caret = start(0);
  #find = null;

  #away = new AbortController();

  // text may have colour sequences. newScreen is screen.js's, which is loaded with the terminal. closed() is called when the
  // overlay closes; links(screen), which is optional, makes a link provider. view is the terminal's screen when the mouse has opened
  // it, whose size it has then; selected() is called when the mouse has selected something, copied() when something was copied.
  constructor(root, text, newScreen, { closed, links, label, view, selected, copied }) {
    Object.assign(this, { closed, copied, view });
    this.place = h("div", { class: "terminal-past" });
    this.element = h("div", { class: `terminal-scrollback${view ? " view" : ""}`, role: "dialog", "aria-label": `Scrollback of ${label}` }, this.place, this.#bar());
    root.append(this.element);
    Object.assign(this, newScreen(root, { convertEol: true, cursorBlink: false, cursorInactiveStyle: "none", scrollback: mostRows }));
    this.screen.open(this.place);
    this.screen.textarea?.setAttribute("aria-label", `Scrollback of ${label}: arrow keys move, Shift selects, Enter copies, Escape closes`);
    this.screen.attachCustomKeyEventHandler((event) => this.#key(event));
    this.place.addEventListener("wheel", (event) => this.#wheel(event), { capture: true, passive: false, signal: this.#away.signal });
    watchMouse(this.place, this.screen, { selected }, this.#away.signal);
    if (links) this.screen.registerLinkProvider(links(this.screen));
    this.#fit();
    this.sizes = new ResizeObserver(() => (this.isView ? setTimeout(() => this.#fit(), afterTerminal) : this.#fit()));
    this.sizes.observe(this.place);
    this.shown = new Promise((done) => this.screen.write(`${coloursOnly(text.replace(/\n$/u, ""))}\x1b[?25l`, () => {
      this.#caret = start(this.#last());
      if (!this.isView) this.#draw();
      done();
    }));
  }

  #bar() {
    const make = (text, press, kind) => h("button", { type: "button", class: kind, click: press }, text);
    this.word = h("strong", { role: "status" }, "Scrollback");
    return h("div", { class: "terminal-past-bar" }, this.word, h("span", { class: "terminal-past-hint" }, "Arrow keys move, Shift selects, Enter copies."),
      make("Find", () => this.find()), make("Copy", () => this.#copy(), "copies"), make("Copy all", () => this.#copyAll(), "copies"), make("Close", () => this.close()));
  }

  get isView() {
    return Boolean(this.view);
  }

  #fit() {
    if (this.#away.signal.aborted) return;
    if (this.view) this.screen.resize(this.view.cols, this.view.rows);
    else this.fitting.fit();
  }

  // scroll scrolls by lines, up when negative.
  scroll(lines) {
    this.screen.scrollLines(lines);
  }

  // drag continues a selection that began with the mouse event press, with the pointer where the event at says.
  drag(press, at) {
    const event = (name, { clientX, clientY }) => new MouseEvent(name, { clientX, clientY, button: 0, buttons: 1, detail: 1, bubbles: true, cancelable: true, view: window });
    this.place.querySelector(".xterm-screen").dispatchEvent(event("mousedown", press));
    document.dispatchEvent(event("mousemove", at));
  }

  // #wheel closes a view that is scrolled beyond its end.
  #wheel(event) {
    const { baseY, viewportY } = this.screen.buffer.active;
    if (!this.isView || event.deltaY <= 0 || viewportY < baseY || event.buttons) return;
    event.preventDefault();
    event.stopPropagation();
    this.close();
  }

  // scrolls says whether there is more than the screen shows.
  get scrolls() {
    return this.screen.buffer.active.baseY > 0;
  }

  // settle turns a view into the overlay for the keyboard.
  settle() {
    if (!this.isView) return;
    this.view = null;
    this.element.classList.remove("view");
    this.#fit();
    this.#draw();
  }

  focus() {
    this.screen.focus();
  }

  find() {
    this.settle();
    this.#find ??= new FindBar(this.screen, this.element, () => {
      this.#find = null;
      const found = this.screen.getSelectionPosition();
      if (found) this.#caret = { ...start(found.start.y, found.start.x) };
      this.focus();
    });
    this.#find.open();
  }

  // text returns everything as plain text, with wrapped lines joined.
  text() {
    const buffer = this.screen.buffer.active;
    const lines = [];
    for (let row = 0; row <= this.#last(); row++) {
      const line = buffer.getLine(row);
      const text = line.translateToString(!buffer.getLine(row + 1)?.isWrapped);
      if (line.isWrapped && lines.length > 0) lines[lines.length - 1] += text;
      else lines.push(text);
    }
    return lines.join("\n");
  }

  // #last returns the last non-empty row.
  #last() {
    const buffer = this.screen.buffer.active;
    let row = buffer.length - 1;
    while (row > 0 && !buffer.getLine(row)?.translateToString(true)) row--;
    return row;
  }

  #page() {
    const buffer = this.screen.buffer.active;
    return {
      rows: this.#last() + 1, cols: this.screen.cols, height: this.screen.rows,
      text: (row) => buffer.getLine(row)?.translateToString(true) ?? "",
    };
  }

  #key(event) {
    if (event.type !== "keydown") return false;
    const ctrl = event.ctrlKey || event.metaKey;
    if (event.key === "Escape") this.#caret.from ? this.#set(start(this.#caret.row, this.#caret.col)) : this.close();
    else if (event.key === "Enter" || (ctrl && event.code === "KeyC")) this.#copy().then(() => event.key === "Enter" && this.close());
    else if (event.key === " ") this.#set(toggleMark(this.#caret));
    else if (event.key === "/" || (ctrl && event.code === "KeyF")) this.find();
    else {
      const next = press(this.#caret, event.key, { shift: event.shiftKey, ctrl }, this.#page());
      if (!next) return false;
      this.#set(next);
    }
    event.preventDefault();
    event.stopPropagation();
    return false;
  }

  #set(caret) {
    this.#caret = caret;
    this.#draw();
  }

  #draw() {
    const { row, col, length } = selection(this.#caret, this.screen.cols);
    this.screen.select(col, row, length);
    const top = this.screen.buffer.active.viewportY;
    if (this.#caret.row < top) this.screen.scrollToLine(this.#caret.row);
    else if (this.#caret.row >= top + this.screen.rows) this.screen.scrollToLine(this.#caret.row - this.screen.rows + 1);
  }

  async #copy() {
    this.copied(await copy(this.screen.getSelection()));
  }

  async #copyAll() {
    this.copied(await copy(this.text()));
  }

  close() {
    if (this.#away.signal.aborted) return;
    this.#away.abort();
    this.sizes.disconnect();
    this.screen.dispose();
    this.element.remove();
    this.closed();
  }
}
