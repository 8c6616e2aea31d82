// The find bar of a terminal. It searches upwards first, where the older output is.
import { SearchAddon } from "@xterm/addon-search";
import { h } from "../js/dom.js";
import { toHex } from "./theme.js";

const mostMarked = 1000;

function button(text, title, press, label = title) {
  return h("button", { type: "button", title, "aria-label": label, click: press }, text);
}

export class FindBar {
  #options = { caseSensitive: false, regex: false };
  #broken = false;

  // screen is an xterm.js terminal; root gets the bar; closed() is called when the bar closes.
  constructor(screen, root, closed) {
    this.screen = screen;
    this.closed = closed;
    this.search = new SearchAddon({ highlightLimit: mostMarked });
    screen.loadAddon(this.search);
    this.search.onDidChangeResults((e) => this.#count(e));
    this.#make();
    root.append(this.element);
  }

  #make() {
    this.input = h("input", { type: "text", spellcheck: "false", autocomplete: "off", placeholder: "Find in the terminal", "aria-label": "Find in the terminal" });
    this.count = h("span", { class: "terminal-found", role: "status" });
    const toggle = (name, text, title) => {
      const b = button(text, title, () => {
        this.#options[name] = !this.#options[name];
        b.setAttribute("aria-pressed", String(this.#options[name]));
        this.#search(true);
      });
      b.setAttribute("aria-pressed", "false");
      return b;
    };
    this.element = h("div", { class: "terminal-find", role: "search" },
      this.input, this.count, toggle("caseSensitive", "Aa", "Match case"), toggle("regex", ".*", "Regular expression"),
      button("↑", "Previous (Enter)", () => this.previous(), "Previous"), button("↓", "Next (Shift+Enter)", () => this.next(), "Next"),
      button("×", "Close (Esc)", () => this.close(), "Close"),
    );
    this.input.addEventListener("input", () => this.#search(true));
    this.element.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event) {
    event.stopPropagation(); // keeps keys from the page's shortcuts and the copy mode
    if (event.key === "Escape") this.close();
    else if (event.key === "Enter" && event.target === this.input) event.shiftKey ? this.next() : this.previous();
    else return;
    event.preventDefault();
  }

  open() {
    this.input.focus();
    this.input.select();
    if (this.input.value) this.#search(true);
  }

  previous() {
    this.#search(false);
  }

  next() {
    this.#find((text, options) => this.search.findNext(text, options));
  }

  // #search searches upwards: from the end when the query has changed, else from the current match.
  #search(afresh) {
    if (afresh) {
      this.screen.clearSelection();
      this.search.clearDecorations(); // the addon does not notice changed options
    }
    this.#find((text, options) => this.search.findPrevious(text, options));
  }

  #find(by) {
    const text = this.input.value;
    this.#broken = false;
    if (!text) {
      this.search.clearDecorations();
      return this.#setCount("");
    }
    if (this.#options.regex && !isPattern(text)) {
      this.#broken = true;
      this.search.clearDecorations();
      return this.#setCount("Invalid regular expression");
    }
    by(text, { ...this.#options, decorations: this.#colours() });
  }

  #colours() {
    const style = getComputedStyle(this.element);
    const colour = (name) => toHex(style.getPropertyValue(name), this.element);
    const [match, active] = [colour("--find-match"), colour("--find-active")];
    return { matchBackground: match, matchOverviewRuler: match, activeMatchBackground: active, activeMatchColorOverviewRuler: active };
  }

  #count({ resultIndex, resultCount }) {
    if (this.#broken || !this.input.value) return;
    const all = resultCount >= mostMarked ? `${mostMarked}+` : resultCount;
    this.#setCount(resultCount === 0 ? "No results" : resultIndex < 0 ? `${all} found` : `${resultIndex + 1} of ${all}`);
  }

  #setCount(text) {
    this.count.textContent = text;
    this.element.classList.toggle("none", text === "No results" || this.#broken);
  }

  close() {
    this.search.clearDecorations();
    this.search.dispose();
    this.element.remove();
    this.closed();
  }
}

function isPattern(text) {
  try {
    return Boolean(new RegExp(text, "g"));
  } catch {
    return false;
  }
}
