// FindView searches below a folder, by name or content, and shows results as they arrive.
import { Problem, problemOf } from "./api.js";
import { announce } from "../js/announce.js";
import { button, h, icon } from "../js/dom.js";
import { debounce } from "../js/timers.js";
import { iconOf } from "./kinds.js";
import { leadOf, lineOf, nameElement, pieces, textElement } from "./names.js";
import { baseOf, canonical, encodePath, parentOf, relative, tidy } from "./paths.js";
import { count } from "./format.js";

const pause = 350; // ms after the last key
const most = 2000; // results
const slow = 150; // ms before a search counts as slow

// foundOf gives a result its encoded path.
function foundOf(result) {
  return { ...result, path: result.path_encoded ? canonical(result.path_encoded) : encodePath(result.path) };
}

// placeOf returns where a path belongs in a sorted list of [path, …], folders before what is after them in the tree.
export function placeOf(sorted, path) {
  const key = path.replaceAll("/", "\0");
  let from = 0;
  for (let to = sorted.length; from < to; ) {
    const middle = (from + to) >> 1;
    if (sorted[middle][0].replaceAll("/", "\0") < key) from = middle + 1;
    else to = middle;
  }
  return from;
}

const modes = {
  content: { title: "Contents", placeholder: "Find in files", other: "names" },
  names: { title: "Names", placeholder: "Name or *.go", other: "content" },
};

export class FindView {
  #away = new AbortController();
  #groups = new Map();
  #sorted = []; // [path, element]
  #n = 0;

  // owner: {files, home, open(path, {line, column}), reveal(path), close()}
  constructor(owner) {
    this.owner = owner;
    this.field = h("input", { class: "input", type: "search", "aria-label": "Find", spellcheck: "false", autocapitalize: "off", maxlength: "1000", "data-focus": true });
    this.modes = Object.keys(modes).map((mode) => h("button", { class: "chip", type: "button", "data-mode": mode, click: () => this.setMode(mode) }, modes[mode].title));
    this.case = this.#switch("Aa", "Match case");
    this.regex = this.#switch(".*", "Regular expression");
    this.place = h("p", { class: "find-place" });
    this.note = h("p", { class: "find-note", role: "status" });
    this.results = h("div", { class: "find-results", tabindex: "-1" });
    this.element = h("div", { class: "find" },
      h("div", { class: "find-head" },
        h("div", { class: "search" }, icon("find"), this.field, button("close", "Back to the files", () => this.owner.close(), { kind: "bare low find-close" })),
        h("div", { class: "find-how" }, h("div", { class: "chips" }, this.modes), h("span", { class: "find-switches" }, this.case, this.regex)), this.place),
      this.note, this.results);
    this.soon = debounce(() => this.run(), pause);
    this.field.addEventListener("input", () => this.soon());
    this.field.addEventListener("keydown", (event) => this.#key(event));
    this.results.addEventListener("keydown", (event) => this.#walk(event));
    this.setMode("content"); // names are found by Ctrl+P as well
  }

  #switch(text, title) {
    const b = h("button", { class: "switch", type: "button", title, "aria-label": title, "aria-pressed": "false" }, text);
    b.addEventListener("click", () => {
      b.setAttribute("aria-pressed", String(b.getAttribute("aria-pressed") !== "true"));
      this.run();
    });
    return b;
  }

  setMode(mode) {
    this.mode = mode;
    for (const b of this.modes) b.setAttribute("aria-pressed", String(b.dataset.mode === mode));
    this.field.placeholder = modes[mode].placeholder;
    this.regex.classList.toggle("unseen", mode === "names"); // it keeps its place
    if (this.folder) this.run();
  }

  // start shows the view for a folder.
  start(folder) {
    this.folder = folder;
    this.place.replaceChildren("in ", textElement(tidy(folder, this.owner.home, this.owner.whole)));
    this.field.focus();
    this.field.select();
    if (this.field.value) this.run();
  }

  stop() {
    this.soon.cancel();
    this.#away.abort();
  }

  async run() {
    this.stop();
    this.#away = new AbortController();
    const { signal } = this.#away;
    this.#groups.clear();
    this.#sorted = [];
    this.#n = 0;
    this.results.replaceChildren();
    this.note.textContent = "";
    const query = this.field.value;
    if (!query.trim()) return;
    const waits = setTimeout(() => (this.note.textContent = "Searching…"), slow);
    const pressed = (b) => b.getAttribute("aria-pressed") === "true";
    try {
      const ask = { path_encoded: this.folder, query, in: this.mode, case: pressed(this.case), regex: this.mode === "content" && pressed(this.regex), limit: most };
      for await (const result of this.owner.files.search(ask, signal)) {
        if (signal.aborted) return;
        if (result.problem) throw new Problem(result.problem.status, result.problem.code, result.problem.detail);
        if (result.end) this.#sum(query, result.more);
        else this.#add(foundOf(result));
      }
    } catch (err) {
      if (!signal.aborted) this.#fail(problemOf(err));
    } finally {
      clearTimeout(waits);
    }
  }

  #sum(query, more) {
    const files = this.#groups.size;
    const text = !this.#n ? `No results for “${pieces(query).map((p) => p.text).join("")}”.`
      : this.mode === "names" ? count(this.#n, "result") : `${count(this.#n, "result")} in ${count(files, "file")}`;
    this.note.textContent = more ? `${text}. There may be more results.` : text;
    announce(this.note.textContent);
    if (!this.#n) this.note.append(this.#otherButton());
  }

  // #otherButton searches names instead of contents, or the reverse.
  #otherButton() {
    const { other } = modes[this.mode];
    return h("button", { class: "link", type: "button", click: () => (this.setMode(other), this.field.focus()) }, `Search ${modes[other].title.toLowerCase()} instead`);
  }

  #fail(problem) {
    const again = problem.status !== 400 && h("button", { class: "link", type: "button", click: () => this.run() }, "Retry"); // the same bad query would fail again
    this.note.replaceChildren(...[h("span", { class: "fault" }, icon("warn"), problem.message), again].filter(Boolean));
  }

  #add(found) {
    if (++this.#n > most) return;
    if (this.mode === "names") return this.#insert(found.path, this.#file(found));
    let group = this.#groups.get(found.path);
    if (!group) {
      group = { element: h("details", { class: "find-group", open: true }, h("summary", {}, icon("right"), this.#label(found), h("span", { class: "count" })), h("div", {})), n: 0 };
      this.#groups.set(found.path, group);
      this.#insert(found.path, group.element);
    }
    group.n++;
    group.element.querySelector(".count").textContent = group.n;
    group.element.lastChild.append(this.#line(found));
  }

  // #insert adds a file in the order of paths: the search finds them in any order.
  #insert(path, element) {
    const at = placeOf(this.#sorted, path);
    this.results.insertBefore(element, this.#sorted[at]?.[1] ?? null);
    this.#sorted.splice(at, 0, [path, element]);
  }

  #label(found) {
    const look = iconOf({ name: baseOf(found.path), type: found.type ?? "file", target_type: found.target_type });
    const where = relative(parentOf(found.path), this.folder);
    return h("span", { class: "names" }, h("span", { class: `glyph${look.tint ? ` tint-${look.tint}` : ""}` }, icon(look.icon)), nameElement(baseOf(found.path)), where && h("span", { class: "target" }, nameElement(where)));
  }

  #file(found) {
    const open = () => (found.type === "folder" ? this.owner.reveal(found.path) : this.owner.open(found.path, {}));
    this.#groups.set(found.path, found);
    return h("button", { type: "button", class: "find-row", click: open }, this.#label(found));
  }

  #line(found) {
    return h("button", { type: "button", class: "find-row line", click: () => this.owner.open(found.path, { line: found.line, column: found.column, bytes: true, match: found.match }) },
      h("span", { class: "line-no" }, found.line), h("bdi", { class: "clip" }, leadOf(found.before), h("mark", {}, lineOf(found.match)), lineOf(found.after)));
  }

  #key(event) {
    event.stopPropagation();
    if (event.key === "Enter") this.run();
    else if (event.key === "Escape") this.owner.close();
    else if (event.key === "ArrowDown") this.results.querySelector(".find-row")?.focus();
    else return;
    event.preventDefault();
  }

  #walk(event) {
    event.stopPropagation();
    if (event.key === "Escape") return this.field.focus();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const rows = [...this.results.querySelectorAll(".find-row, summary")].filter((r) => r.checkVisibility());
    const next = rows[rows.indexOf(document.activeElement) + step];
    (next ?? this.field).focus();
  }
}
