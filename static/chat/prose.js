// Shows an agent's Markdown. Nothing in it runs or loads: links open in a new tab and say where they lead, pictures are their text. It is
// parsed in pieces, so that the page answers meanwhile.
import DOMPurify from "dompurify";
import { Marked } from "marked";
import { button, h, icon } from "../js/dom.js";
import { copy } from "../js/clipboard.js";
import { fencesOf, numberOf } from "./fences.js";
import { languages } from "./languages.js";
import { hiddenIn, shown } from "./model.js";
import { deep, longest, pieceOf } from "./pieces.js";
import { inTime, later } from "./slices.js";
import { redraw } from "./view.js";

const marked = new Marked({ gfm: true, breaks: false });
const most = 100_000; // characters of a text that are drawn before the person asks for more
const share = 10; // of the time at most one part goes into drawing a text that grows
const late = 16; // ms that a text which grows may be late without being noticed

// A profile would put its own tags in the place of these, style and form among them.
const purify = {
  RETURN_DOM_FRAGMENT: true, ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, SANITIZE_NAMED_PROPS: true,
  ALLOWED_TAGS: ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "a", "img", "table", "thead", "tbody", "tr", "th", "td", "sub", "sup", "kbd"],
  ALLOWED_ATTR: ["href", "alt", "start", "align", "class"],
};

// fragmentOf renders Markdown to sanitized elements. blocks are the text's fenced blocks; run(block) runs one.
export function fragmentOf(text, blocks = [], run = null) {
  if (isAlone(text, blocks)) return holding(codeBlock(blocks[0], run));
  if (text.length > longest || deep(text)) return holding(plain(text));
  const fragment = DOMPurify.sanitize(marked.parse(text), purify);
  for (const e of fragment.querySelectorAll("[class]")) if (e.tagName !== "CODE" || !/^language-[\w+#.-]{1,30}$/.test(e.className)) e.removeAttribute("class");
  for (const img of fragment.querySelectorAll("img")) img.replaceWith(h("span", { class: "absent" }, img.alt || "Picture"));
  for (const a of fragment.querySelectorAll("a")) secure(a);
  let next = 0;
  for (const pre of fragment.querySelectorAll("pre")) {
    const code = (pre.querySelector("code") ?? pre).textContent.trimEnd();
    const at = blocks.findIndex((b, i) => i >= next && b.code.trimEnd() === code);
    if (at >= 0) next = at + 1;
    pre.replaceWith(at >= 0 ? codeBlock(blocks[at], run) : codeBlock({ code })); // what a button runs is what is above it
  }
  return fragment;
}

// isAlone says whether a text is one block of code.
const isAlone = (text, blocks) => blocks.length === 1 && blocks[0].from === 0 && text.slice(blocks[0].to).trim() === "";

function holding(...nodes) {
  const fragment = document.createDocumentFragment();
  fragment.append(...nodes);
  return fragment;
}

const plain = (text) => h("pre", { class: "plain" }, ...clipped(text));

// clipped gives the beginning of a text, and a button that shows more of it in its place.
export function clipped(text) {
  if (text.length <= longest) return [text];
  const rest = text.slice(longest);
  const more = h("button", { type: "button", class: "link", click: () => more.replaceWith(...clipped(rest)) }, `Show ${Math.min(rest.length, longest).toLocaleString("en")} of ${rest.length.toLocaleString("en")} more characters`);
  return [text.slice(0, longest), more];
}

// secure lets only links to pages lead somewhere.
function secure(a) {
  let to = null;
  try {
    to = new URL(a.getAttribute("href") ?? "");
  } catch {
    // no address of its own
  }
  if (to?.protocol !== "https:" && to?.protocol !== "http:") return a.replaceWith(...a.childNodes);
  Object.assign(a, { target: "_blank", rel: "noopener noreferrer nofollow", title: to.href });
}

// codeBlock draws code with its buttons. What hides in it is shown; what is copied and run is the code itself.
export function codeBlock(block, run) {
  const { code, language } = block;
  const hides = hiddenIn(code);
  const runs = run && code.trim() && (!language || languages.has(language));
  const element = h("div", { class: "code-block" }, h("pre", { role: "group", tabindex: "0", "aria-label": "Code" }, h("code", {}, ...clipped(hides ? shown(code) : code))),
    hides && h("p", { class: "chat-warn" }, icon("warn"), "It has characters that are not visible. They are shown as codes."),
    h("div", { class: "code-tools" }, runs && runButton(() => run(block), language), button("copy", "Copy", () => copy(block.code))));
  return Object.assign(element, { block });
}

// runButton does nothing while the last press of it is on its way, so that a double click runs once.
function runButton(run, language) {
  let busy = false;
  const b = button("play", "", async () => {
    if (busy) return;
    busy = true;
    b.setAttribute("aria-busy", "true"); // and not disabled: it keeps the focus
    await run();
    b.removeAttribute("aria-busy");
    busy = false;
  }, { text: "Run", title: `Run this ${language ? `${language} ` : ""}code in the sandbox` });
  return b;
}

// Prose shows a text that grows: what is complete is parsed once. run(number, code) runs one of its blocks of code.
export class Prose {
  #done = h("div", { class: "prose" });
  #rest = h("div", { class: "prose" });
  #more = h("p", {});
  #parsed = 0; // characters of the text
  #text = "";
  #limit = most;
  #waits = false; // for a slice
  #timer = 0; // before the rest is drawn again
  #open = null; // {block, element}: the block of code that the rest is, while it grows
  #run;

  constructor(run = null) {
    this.#run = run;
    this.element = h("div", { class: "prose-text" }, this.#done, this.#rest, this.#more);
  }

  update(text, growing = false) {
    text = text.replace(/\r\n?/g, "\n");
    if (!text.startsWith(this.#text.slice(0, this.#parsed))) {
      this.#parsed = 0;
      this.#done.replaceChildren();
    }
    this.#text = text;
    this.growing = growing;
    if (!growing) {
      clearTimeout(this.#timer);
      this.#timer = 0;
    }
    if (!this.#waits && !this.#timer) this.#draw();
  }

  // #draw draws until a slice's time is over, and the rest later.
  #draw() {
    this.#waits = false;
    const more = inTime();
    for (let n = this.#next(); n; n = this.#next()) {
      this.#done.append(this.#fragment(this.#parsed, this.#parsed + n, Boolean(this.#run)));
      this.#parsed += n;
      if (more()) continue;
      this.#waits = true;
      later(() => this.#draw());
      return;
    }
    const began = performance.now();
    this.#drawRest();
    this.#frame();
    const pause = share * (performance.now() - began);
    if (!this.growing || pause < late) return;
    const text = this.#text;
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      if (this.#text !== text) this.#draw();
    }, pause);
  }

  // #drawRest draws what is not complete. A block of code that grows stays, so that it can be scrolled and selected meanwhile.
  #drawRest() {
    const end = Math.min(this.#text.length, this.#limit);
    const rest = this.#text.slice(this.#parsed, end);
    const blocks = fencesOf(rest);
    const alone = isAlone(rest, blocks);
    if (this.growing && alone && this.#grow(blocks[0])) return;
    const top = this.#rest.querySelector("pre")?.scrollTop;
    this.#rest.replaceChildren(this.#fragment(this.#parsed, end, this.#run && !this.growing && end === this.#text.length)); // else a block may be cut
    const pre = alone && this.#rest.querySelector("pre");
    if (pre && top) pre.scrollTop = top;
    this.#open = this.growing && pre ? { block: pre.parentElement.block, element: pre.firstElementChild } : null;
  }

  // #grow adds what is new to the block of code that is there, if that is all.
  #grow({ code }) {
    const { block, element } = this.#open ?? {};
    if (!block || !code.startsWith(block.code) || code.length > longest || hiddenIn(code)) return false;
    element.append(code.slice(block.code.length));
    block.code = code;
    return true;
  }

  // #next gives how many characters the next complete piece has.
  #next() {
    return this.#parsed < this.#limit ? pieceOf(this.#text.slice(this.#parsed, this.#limit)) : 0;
  }

  // #fragment draws a part of the text. Which block of the whole text one in it is, is known when it is run: a part may split a list.
  #fragment(from, to, runs) {
    const part = this.#text.slice(from, to);
    return fragmentOf(part, fencesOf(part), runs && ((b) => this.#run(numberOf(this.#text, from + b.from, b.code), b.code)));
  }

  #frame() {
    const left = Math.max(this.#text.length - this.#limit, 0);
    redraw(this.#more, left, () => (left ? [h("button", { type: "button", class: "link", click: () => {
      this.#limit += most;
      this.#draw();
    } }, `Show more: ${left.toLocaleString("en")} characters are left`)] : []));
  }
}
