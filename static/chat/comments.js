// Comments on lines of a diff. They are collected beside the composer and go to the agent with the next message.
import { button, h } from "../js/dom.js";
import { readJSON, writeJSON } from "../js/storage.js";
import { line as oneLine } from "./model.js";

const most = 50; // comments that wait
const mostLines = 100; // of one
const longest = 500; // characters of a line that are quoted

// linesOf gives the lines of a unified diff from its first hunk on: {text, line, old}. line is the number in the file that there is now; old
// that in the one before, for a line that is removed. Others have neither.
export function linesOf(unified) {
  const all = unified.replace(/\n$/, "").split("\n");
  let line = 0;
  let old = 0;
  return all.slice(Math.max(all.findIndex((text) => text.startsWith("@@")), 0)).map((text) => {
    const place = /^@@ -(\d+)(?:,\d+)? \+(\d+)/.exec(text);
    if (place) {
      [old, line] = [Number(place[1]), Number(place[2])];
      return { text };
    }
    if (text[0] === "-") return { text, old: old++ };
    if (text[0] === "+") return { text, line: line++ };
    if (text[0] === "\\") return { text }; // "No newline at end of file"
    old++;
    return { text, line: line++ };
  });
}

// placeOf names lines: "src/a.go:12-14".
export function placeOf(path, lines) {
  const now = lines.map((l) => l.line).filter(Boolean);
  const numbers = now.length ? now : lines.map((l) => l.old).filter(Boolean);
  const [from, to] = [numbers[0], numbers.at(-1)];
  return `${oneLine(path)}${from ? `:${from}` : ""}${to > from ? `-${to}` : ""}${now.length || !from ? "" : " (removed)"}`;
}

// quote writes comments as the beginning of a message.
export function quote(comments) {
  return comments.map(({ place, lines, text }) => [`\`${place.replaceAll("`", "'")}\``, ...lines.map((l) => `> ${l}`), "", text].join("\n")).join("\n\n");
}

// quotesOf reads a message that may have comments in it: {place, lines} for the lines that one is about, {text} for what is written beside them.
export function quotesOf(message) {
  const parts = [];
  const write = (text) => text && parts.push({ text });
  let at = 0;
  for (const m of message.matchAll(/^`([^`\n]+)`\n((?:> .*(?:\n|$))+)\n?/gm)) {
    write(message.slice(at, m.index).trimEnd());
    parts.push({ place: m[1], lines: m[2].trimEnd().split("\n").map((l) => l.slice(2)) });
    at = m.index + m[0].length;
  }
  write(message.slice(at));
  return parts;
}

// Comments are those of one conversation that wait. They outlive a reload of the page.
export class Comments {
  #list = [];
  #key = "";

  constructor(storage = globalThis.sessionStorage) {
    this.storage = storage;
    this.element = globalThis.document && h("ul", { class: "chat-comments", "aria-label": "Comments for the next message", hidden: true });
  }

  get list() {
    return this.#list;
  }

  // of shows the comments of a conversation.
  of(id) {
    this.#key = `chat comments ${id}`;
    const list = readJSON(this.storage, this.#key, []);
    this.#list = Array.isArray(list) ? list : [];
    this.draw();
  }

  // add takes a comment {path, lines: [{text, line, old}], text}. false when there are too many.
  add({ path, lines, text }) {
    if (this.#list.length >= most) return false;
    const some = lines.slice(0, mostLines);
    const quoted = some.map((l) => oneLine(l.text.slice(0, longest).replace(/\r$/, "")) + (l.text.length > longest ? "…" : "")); // what a file says begins no line of the person's
    if (some.length < lines.length) quoted.push("…");
    this.#set([...this.#list, { place: placeOf(path, lines), lines: quoted, text }]);
    return true;
  }

  // take gives the comments away. put brings them back when their message was not sent.
  take() {
    const list = this.#list;
    this.#set([]);
    return list;
  }

  put(list) {
    if (list.length) this.#set([...list, ...this.#list]);
  }

  #set(list) {
    this.#list = list;
    writeJSON(this.storage, this.#key, list.length ? list : undefined);
    this.draw();
  }

  draw() {
    if (!this.element) return;
    this.element.hidden = !this.#list.length;
    this.element.replaceChildren(...this.#list.map((c, i) => h("li", {}, h("span", { class: "mono clip" }, c.place), h("span", { class: "clip" }, c.text),
      button("close", `Delete the comment on ${c.place}`, () => {
        this.#set(this.#list.filter((_, n) => n !== i));
        [...this.element.querySelectorAll("button")].at(Math.min(i, this.#list.length - 1))?.focus(); // the next one
      }))));
  }
}

// commentable lets a person choose lines of a diff, by pointer or keyboard, and write about them. rows are [{element, text, line, old}]; add
// takes {lines, text}.
export function commentable(box, rows, add) {
  let from = -1;
  let to = -1;
  let form = null;
  const id = `diff-${Math.random().toString(36).slice(2)}`;
  box.setAttribute("role", "listbox");
  box.setAttribute("aria-multiselectable", "true");
  rows.forEach(({ element }, i) => {
    element.id = `${id}-${i}`;
    element.setAttribute("role", "option");
    element.setAttribute("aria-selected", "false");
  });
  const range = () => rows.slice(Math.min(from, to), Math.max(from, to) + 1);
  const choose = (first, last) => {
    [from, to] = [first, last];
    const [low, high] = [Math.min(first, last), Math.max(first, last)];
    rows.forEach(({ element }, i) => element.setAttribute("aria-selected", String(i >= low && i <= high)));
    if (last >= 0) {
      box.setAttribute("aria-activedescendant", rows[last].element.id);
      rows[last].element.scrollIntoView({ block: "nearest" });
    } else box.removeAttribute("aria-activedescendant");
  };
  const close = () => {
    form?.remove();
    form = null;
    choose(-1, -1);
    box.focus({ preventScroll: true });
  };
  const write = () => {
    if (from < 0) return;
    const field = form?.querySelector("textarea") ?? h("textarea", { class: "input", rows: "2", "aria-label": "Comment", placeholder: "Comment for the agent" }); // what is written so far is about the new lines
    form?.remove();
    const submit = (event) => {
      event.preventDefault();
      const text = field.value.trim();
      if (text && add({ lines: range(), text })) close();
    };
    form = h("form", { class: "chat-comment", submit, keydown: (event) => {
      event.stopPropagation();
      if (event.key === "Escape") close();
      else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) submit(event);
    } }, field, h("div", { class: "buttons end" }, button("", "", close, { text: "Cancel", kind: "low" }), h("button", { type: "submit", class: "button low primary" }, "Add comment")));
    box.after(form);
    field.focus();
  };
  box.addEventListener("keydown", (event) => {
    const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (way) {
      const next = Math.min(Math.max(to + way, 0), rows.length - 1);
      choose(event.shiftKey && from >= 0 ? from : next, next);
    } else if (event.key === "Enter") write();
    else if (event.key === "Escape" && from >= 0) close();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  box.addEventListener("click", (event) => {
    const at = rows.findIndex((row) => row.element === event.target.closest("[role=option]"));
    if (at < 0 || String(getSelection())) return; // a text is being selected
    choose(event.shiftKey && from >= 0 ? from : at, at);
    write();
  });
}
