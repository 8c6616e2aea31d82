// The scrollback of a terminal as an overlay, to search and to select in by keyboard while the program runs on. With tmux
// only the sandbox has the scrollback, else xterm.js has.
import { copy } from "../js/clipboard.js";
import { h } from "../js/dom.js";
import { toggleMark, press, selection, start } from "./caret.js";
import { FindBar } from "./find_bar.js";
import { coloursOnly } from "./sequences.js";

const mostRows = 50_000;

export class Scrollback {
  #caret = start(0);
  #find = null;

  // text may have colour sequences. newScreen is screen.js's, which is loaded with the terminal. closed() is called when the
  // overlay closes; links(screen), which is optional, makes a link provider.
  constructor(root, text, newScreen, { closed, links, label }) {
    this.closed = closed;
    this.place = h("div", { class: "terminal-past" });
    this.element = h("div", { class: "terminal-scrollback", role: "dialog", "aria-label": `Scrollback of ${label}` }, this.place, this.#bar());
    root.append(this.element);
    Object.assign(this, newScreen(root, { convertEol: true, cursorBlink: false, cursorInactiveStyle: "none", scrollback: mostRows }));
    this.screen.open(this.place);
    this.screen.textarea?.setAttribute("aria-label", `Scrollback of ${label}: arrow keys move, Shift selects, Enter copies, Escape closes`);
    this.screen.attachCustomKeyEventHandler((event) => this.#key(event));
    if (links) this.screen.registerLinkProvider(links(this.screen));
    this.fitting.fit();
    this.sizes = new ResizeObserver(() => this.fitting.fit());
    this.sizes.observe(this.place);
    this.shown = new Promise((done) => this.screen.write(`${coloursOnly(text)}\x1b[?25l`, () => {
      this.#caret = start(this.#last());
      this.#draw();
      done();
    }));
  }

  #bar() {
    const make = (text, press) => h("button", { type: "button", click: press }, text);
    this.word = h("strong", { role: "status" }, "Scrollback");
    return h("div", { class: "terminal-past-bar" }, this.word, h("span", { class: "terminal-past-hint" }, "Arrow keys move, Shift selects, Enter copies."),
      make("Find", () => this.find()), make("Copy", () => this.#copy()), make("Copy all", () => this.#copyAll()), make("Close", () => this.close()));
  }

  focus() {
    this.screen.focus();
  }

  find() {
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
    await copy(this.screen.getSelection());
    this.word.textContent = "Copied";
  }

  async #copyAll() {
    await copy(this.text());
    this.word.textContent = "Copied all";
  }

  close() {
    this.sizes.disconnect();
    this.screen.dispose();
    this.element.remove();
    this.closed();
  }
}
