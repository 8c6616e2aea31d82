// Shows an agent's Markdown. Nothing in it runs or loads: links open in a new tab and say where they lead, pictures are their text.
import DOMPurify from "dompurify";
import { Marked } from "marked";
import { button, h } from "../js/dom.js";
import { copy } from "../js/clipboard.js";
import { blocksOf } from "./model.js";

const marked = new Marked({ gfm: true, breaks: false });
const longest = 200_000; // characters of Markdown that are parsed; the rest is shown as it is

// A profile would put its own tags in the place of these, style and form among them.
const purify = {
  RETURN_DOM_FRAGMENT: true, ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, SANITIZE_NAMED_PROPS: true,
  ALLOWED_TAGS: ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre", "blockquote", "ul", "ol", "li", "a", "img", "table", "thead", "tbody", "tr", "th", "td", "sub", "sup", "kbd"],
  ALLOWED_ATTR: ["href", "alt", "start", "align", "class"],
};

// deep says whether a text nests so deeply that parsing it would take too long: a line that begins with very many marks.
const deep = (text) => /^[ \t]*(?:[>*+-][ \t]*){40}/m.test(text) || /[[(*_~`]{400}/.test(text);

// fragmentOf renders Markdown to sanitized elements.
export function fragmentOf(text) {
  if (deep(text)) return plain(text);
  const fragment = DOMPurify.sanitize(marked.parse(text.slice(0, longest)), purify);
  for (const e of fragment.querySelectorAll("[class]")) if (e.tagName !== "CODE" || !/^language-[\w+#.-]{1,30}$/.test(e.className)) e.removeAttribute("class");
  for (const img of fragment.querySelectorAll("img")) img.replaceWith(h("span", { class: "absent" }, img.alt || "Picture"));
  for (const a of fragment.querySelectorAll("a")) secure(a);
  for (const pre of fragment.querySelectorAll("pre")) addTools(pre);
  if (text.length > longest) fragment.append(...plain(text.slice(longest)).childNodes);
  return fragment;
}

function plain(text) {
  const fragment = document.createDocumentFragment();
  fragment.append(h("pre", { class: "plain" }, text));
  return fragment;
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

function addTools(pre) {
  const code = pre.querySelector("code")?.textContent ?? pre.textContent;
  const block = h("div", { class: "code-block" });
  pre.replaceWith(block);
  block.append(pre, button("copy", "Copy", () => copy(code)));
}

// Prose shows a text that grows: blocks that are complete are parsed once.
export class Prose {
  #done = h("div", { class: "prose" });
  #rest = h("div", { class: "prose" });
  #parsed = 0;
  #shown = "";

  constructor() {
    this.element = h("div", { class: "prose-text" }, this.#done, this.#rest);
  }

  update(text) {
    if (!text.startsWith(this.#shown.slice(0, this.#parsed))) {
      this.#parsed = 0;
      this.#done.replaceChildren();
    }
    this.#shown = text;
    const { whole, rest } = blocksOf(text.slice(this.#parsed));
    if (whole) {
      this.#done.append(fragmentOf(whole));
      this.#parsed += whole.length;
    }
    this.#rest.replaceChildren(fragmentOf(rest));
  }
}
