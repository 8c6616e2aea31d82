// The bar that finds text in a terminal: upwards first, because that is where a terminal's past is.
import { SearchAddon } from "@xterm/addon-search";
import { hexOf } from "./look.js";

const mostMarked = 1000;

function button(text, title, press, label = title) {
  const b = document.createElement("button");
  b.type = "button";
  b.textContent = text;
  b.title = title;
  b.setAttribute("aria-label", label);
  b.addEventListener("click", press);
  return b;
}

export class FindBar {
  #options = { caseSensitive: false, regex: false };
  #broken = false;

  // screen is a terminal of xterm.js, root where the bar stands; closed is called when it is closed.
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
    this.element = document.createElement("div");
    this.element.className = "terminal-find";
    this.element.setAttribute("role", "search");
    this.input = document.createElement("input");
    this.input.type = "text";
    this.input.spellcheck = false;
    this.input.autocomplete = "off";
    this.input.placeholder = "Find in the terminal";
    this.input.setAttribute("aria-label", "Find in the terminal");
    this.count = document.createElement("span");
    this.count.className = "terminal-found";
    this.count.setAttribute("role", "status");
    const toggle = (name, text, title) => {
      const b = button(text, title, () => {
        this.#options[name] = !this.#options[name];
        b.setAttribute("aria-pressed", String(this.#options[name]));
        this.#look(true);
      });
      b.setAttribute("aria-pressed", "false");
      return b;
    };
    this.element.append(
      this.input, this.count, toggle("caseSensitive", "Aa", "Match case"), toggle("regex", ".*", "Regular expression"),
      button("↑", "Previous (Enter)", () => this.previous(), "Previous"), button("↓", "Next (Shift+Enter)", () => this.next(), "Next"),
      button("×", "Close (Esc)", () => this.close(), "Close"),
    );
    this.input.addEventListener("input", () => this.#look(true));
    this.element.addEventListener("keydown", (event) => this.#key(event));
  }

  #key(event) {
    event.stopPropagation(); // neither the page's shortcuts nor the copy mode's keys
    if (event.key === "Escape") this.close();
    else if (event.key === "Enter" && event.target === this.input) event.shiftKey ? this.next() : this.previous();
    else return;
    event.preventDefault();
  }

  open() {
    this.input.focus();
    this.input.select();
    if (this.input.value) this.#look(true);
  }

  previous() {
    this.#look(false);
  }

  next() {
    this.#find((text, options) => this.search.findNext(text, options));
  }

  // look searches upwards: from the end when what is wanted has changed, else from the present find.
  #look(afresh) {
    if (afresh) {
      this.screen.clearSelection();
      this.search.clearDecorations(); // the addon does not notice by itself that only the options are other ones
    }
    this.#find((text, options) => this.search.findPrevious(text, options));
  }

  #find(by) {
    const text = this.input.value;
    this.#broken = false;
    if (!text) {
      this.search.clearDecorations();
      return this.#tell("");
    }
    if (this.#options.regex && !isPattern(text)) {
      this.#broken = true;
      this.search.clearDecorations();
      return this.#tell("Not a regular expression");
    }
    by(text, { ...this.#options, decorations: this.#colours() });
  }

  #colours() {
    const style = getComputedStyle(this.element);
    const colour = (name) => hexOf(style.getPropertyValue(name), this.element);
    const [match, active] = [colour("--find-match"), colour("--find-active")];
    return { matchBackground: match, matchOverviewRuler: match, activeMatchBackground: active, activeMatchColorOverviewRuler: active };
  }

  #count({ resultIndex, resultCount }) {
    if (this.#broken || !this.input.value) return;
    const all = resultCount >= mostMarked ? `${mostMarked}+` : resultCount;
    this.#tell(resultCount === 0 ? "Nothing found" : resultIndex < 0 ? `${all} found` : `${resultIndex + 1} of ${all}`);
  }

  #tell(text) {
    this.count.textContent = text;
    this.element.classList.toggle("none", text === "Nothing found" || this.#broken);
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
