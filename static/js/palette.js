// The command palette: one field over everything that the page can do and lead to, and over the names of the sandbox's files.
// It is a combobox with a listbox in a dialog.
import { Files } from "../files/api.js";
import { pieces } from "../files/names.js";
import { encodePath } from "../files/paths.js";
import { commandsOf, keysOf, rank } from "./commands.js";
import { h, icon } from "./dom.js";
import { FileNames, marks } from "./file_names.js";

const mostRows = 100;
const mostOfGroup = 8; // of what is not of the page, without a query
const isMac = /Mac|iPhone|iPad/.test(navigator.platform ?? "");
const modes = {
  commands: { label: "Search and commands", hint: "Search commands and pages…" },
  files: { label: "Open a file", hint: "File name, or > for commands" },
};

export class Palette {
  static #one = null;

  // open shows the palette. The focus returns to from.
  static open(mode, { typed = "", from }) {
    (this.#one ??= new Palette()).show(mode, typed, from);
  }

  #rows = []; // {option, entry}
  #at = -1; // the chosen row
  #commands = [];
  #names = null;
  #from = null; // what had the focus

  constructor() {
    this.field = h("input", {
      class: "palette-field", type: "text", role: "combobox", "aria-expanded": "true", "aria-controls": "palette-list", "aria-autocomplete": "list", autocomplete: "off", spellcheck: "false", autocapitalize: "off",
      input: () => this.#draw(), keydown: (event) => this.#key(event),
    });
    this.list = h("div", { class: "palette-list", id: "palette-list", role: "listbox" });
    this.note = h("p", { class: "palette-note" });
    this.status = h("p", { class: "visually-hidden", role: "status" }); // the page's own is inert behind the dialog
    this.dialog = h("dialog", { id: "palette", class: "palette" },
      h("div", { class: "palette-head" }, icon("search"), this.field, h("button", { type: "button", class: "button bare square low", "aria-label": "Close", click: () => this.dialog.close() }, icon("close"))), this.list, this.note, this.status);
    this.dialog.addEventListener("close", () => this.#refocus());
    this.list.addEventListener("click", (event) => this.#click(event));
    this.list.addEventListener("pointerdown", (event) => event.preventDefault()); // the field keeps the focus
    document.body.append(this.dialog);
    const panes = document.querySelector("[data-files-base]")?.dataset;
    if (panes) {
      this.#names = new FileNames(new Files(panes.filesBase, encodePath(panes.filesHome), panes.filesBox));
      this.#names.changed = () => this.mode === "files" && this.#soon();
    }
  }

  show(mode, typed, from) {
    if (this.dialog.open && this.mode === mode) return this.dialog.close();
    this.#setMode(mode === "files" && this.#names ? "files" : "commands");
    this.field.value = typed;
    if (!this.dialog.open) {
      this.#from = from;
      this.#commands = this.#allCommands();
      this.dialog.showModal();
      this.#loadLinks();
    }
    this.field.focus();
    this.#draw();
  }

  // #refocus does what a dialog does by itself unless another was over the page before it, or a command moved what had the focus.
  #refocus() {
    const now = document.activeElement;
    if ((now === document.body || this.dialog.contains(now)) && this.#from?.checkVisibility()) this.#from.focus({ preventScroll: true });
  }

  #allCommands() {
    const terminal = Boolean(this.#from?.closest(".terminal-stage"));
    const all = commandsOf(document, { mac: isMac, terminal });
    if (this.#names) all.push({ group: "Files", text: "Open a file by name…", hint: "", keys: keysOf("Control+P Meta+P", { mac: isMac, terminal }), icon: "file", to: "", run: () => this.show("files", "", this.#from) });
    return all;
  }

  #setMode(mode) {
    this.mode = mode;
    this.field.placeholder = modes[mode].hint;
    for (const e of [this.field, this.list]) e.setAttribute("aria-label", modes[mode].label);
    this.dialog.setAttribute("aria-label", modes[mode].label);
    if (mode === "files" && this.#running) this.#names.refresh();
  }

  // #running says whether names can be read without waking the sandbox.
  get #running() {
    return ["files", "running"].includes(document.querySelector("sandbox-files")?.dataset.state);
  }

  // #loadLinks brings what the palette leads to from every page. Until then it has what the page has.
  async #loadLinks() {
    const answer = await fetch("/palette", { headers: { Accept: "text/html" } }).catch(() => null);
    if (!answer?.ok || answer.redirected) return;
    const links = document.querySelector("[data-palette-links]") ?? document.body.appendChild(h("div", { hidden: true, "data-palette-links": true }));
    links.replaceChildren(...new DOMParser().parseFromString(await answer.text(), "text/html").body.childNodes);
    this.#commands = this.#allCommands();
    if (this.dialog.open && this.mode === "commands") this.#draw(true);
  }

  #soon() {
    this.waits ??= requestAnimationFrame(() => {
      this.waits = null;
      if (this.dialog.open) this.#draw(true);
    });
  }

  // #draw shows what matches. keep leaves the chosen row where it is.
  #draw(keep = false) {
    if (this.mode === "files" && this.field.value.startsWith(">")) {
      this.field.value = this.field.value.slice(1);
      this.#setMode("commands");
    }
    const query = this.field.value.trim();
    const at = keep && this.#at >= 0 ? this.#at : query || this.mode === "files" ? 0 : -1; // Enter alone runs nothing
    this.#rows = [];
    this.list.replaceChildren(...(this.mode === "files" ? this.#fileRows(query) : this.#commandRows(query)));
    this.#say(query);
    this.#choose(Math.min(at, this.#rows.length - 1), keep);
  }

  #say(query) {
    const { said, waits = false } = this.mode === "files" ? this.#aboutNames() : { said: "" };
    const none = (this.#rows.length && !this.#rows[0].entry.elsewhere) || waits ? "" : query ? `Nothing matches “${pieces(query).map((p) => p.text).join("")}”. ` : "Nothing here yet. ";
    this.note.textContent = none + said;
    this.note.hidden = !this.note.textContent;
    clearTimeout(this.told);
    this.told = setTimeout(() => (this.status.textContent = none || `${this.#rows.length} results`), 600);
  }

  // #aboutNames says which names are searched.
  #aboutNames() {
    const { names, more, partial, problem } = this.#names;
    if (!names.size && !this.#running) return { said: "Files can be opened by name while the sandbox runs.", waits: true };
    if (problem) return { said: problem.message };
    if (partial) return { said: "Reading the names of files…", waits: true };
    return { said: more ? `Only the first ${names.size.toLocaleString("en")} files are searched. Find files, in the tree, searches all.` : "Files in ~, without .git, node_modules and caches." };
  }

  #commandRows(query) {
    if (!query) return this.#grouped();
    const found = rank(this.#commands, query, mostRows);
    if (!found.length && this.#names) return this.#elsewhere(query);
    return found.map(({ command, marks: marked }) => this.#row({ ...command, command, marks: marked, place: command.group }));
  }

  // #elsewhere leads to what else has a query that is no command.
  #elsewhere(query) {
    return [
      this.#row({ text: `Open a file named “${query}”`, icon: "file", elsewhere: true, run: () => this.show("files", query, this.#from) }),
      this.#row({ text: `Find “${query}” in files`, icon: "find", elsewhere: true, run: () => document.dispatchEvent(new CustomEvent("sandboxd:find", { detail: query })) }),
    ];
  }

  #grouped() {
    const groups = groupBy(this.#commands);
    const first = this.#names ? [] : ["Sandboxes"]; // what people go to most from other pages
    return [...new Set([...first, ...groups.keys()])].filter((name) => groups.has(name)).map((name, i) => {
      const id = `palette-group-${i}`;
      const rows = groups.get(name).filter((c, n) => !c.many || n < mostOfGroup).map((c) => this.#row({ ...c, command: c }));
      return h("div", { role: "group", "aria-labelledby": id }, h("div", { class: "palette-group", id, role: "presentation" }, name), rows);
    });
  }

  #fileRows(query) {
    const { names } = this.#names;
    const [, name, line] = /^(.*?)(?::(\d+))?$/.exec(query);
    return names.find(name, mostRows).map((i) => {
      const path = names.paths[i];
      const start = path.lastIndexOf("/") + 1;
      const all = name ? marks(path, name) : [];
      return this.#row({
        text: path.slice(start), hint: path.slice(0, Math.max(start - 1, 0)), icon: "file", marks: all.filter((m) => m >= start).map((m) => m - start),
        run: () => document.dispatchEvent(new CustomEvent("sandboxd:open", { detail: { encoded: names.encodedOf(i), pin: true, ...(line && { line: Number(line) }) } })),
      });
    });
  }

  #row(entry) {
    const { text, hint, keys, icon: shape, marks: marked = [], place = "" } = entry;
    const option = h("div", { class: "palette-row", role: "option", id: `palette-${this.#rows.length}`, "aria-selected": "false" },
      typeof shape === "string" ? icon(shape) : (shape?.cloneNode(true) ?? icon("right")), marked.length ? markedText(text, marked) : shown(text, "palette-text"),
      hint && shown(hint, "palette-hint"), h("span", { class: "palette-end" }, place && h("span", {}, place), keys && h("kbd", { class: "key" }, keys)));
    this.#rows.push({ option, entry });
    return option;
  }

  #choose(at, still = false) {
    this.#rows[this.#at]?.option.setAttribute("aria-selected", "false");
    this.#at = at;
    const row = this.#rows[this.#at]?.option;
    row?.setAttribute("aria-selected", "true");
    if (row) this.field.setAttribute("aria-activedescendant", row.id);
    else this.field.removeAttribute("aria-activedescendant");
    if (this.#at <= 0) this.list.scrollTop = 0;
    else if (!still) row?.scrollIntoView({ block: "nearest" });
  }

  #key(event) {
    if (event.isComposing) return;
    const n = this.#rows.length;
    const to = { ArrowDown: this.#at + 1, ArrowUp: Math.max(this.#at, 0) - 1, PageDown: Math.min(this.#at + 10, n - 1), PageUp: Math.max(this.#at - 10, 0) }[event.key];
    if (to !== undefined && n) this.#choose((to + n) % n);
    else if (event.key === "Enter") this.#run(this.#rows[this.#at]);
    else return;
    event.preventDefault();
  }

  #click(event) {
    const option = event.target.closest("[role=option]");
    this.#run(this.#rows.find((r) => r.option === option));
  }

  #run(row) {
    if (!row) return;
    this.dialog.close();
    this.#refocus(); // before the command, which may open a dialog that returns the focus as well
    const { entry } = row;
    const now = this.#commands.includes(entry.command) && this.#allCommands().find((c) => c.text === entry.text && c.group === entry.group); // an update may have replaced its element
    (now || entry).run();
  }
}

function groupBy(list) {
  const groups = new Map();
  for (const c of list) groups.set(c.group, [...(groups.get(c.group) ?? []), c]);
  return groups;
}

// shown shows a text that may come from a sandbox.
function shown(text, className) {
  return h("bdi", { class: className }, pieces(text, false).map((p) => (p.escaped ? h("span", { class: "escaped" }, p.text) : p.text)));
}

// markedText has the letters that match in bold, unless the text has something to escape.
function markedText(text, marked) {
  if (pieces(text, false).some((p) => p.escaped)) return shown(text, "palette-text");
  const parts = [];
  for (let i = 0, from = 0; i < text.length; from = i) {
    const bold = marked.includes(i);
    while (i < text.length && marked.includes(i) === bold) i++;
    parts.push(bold ? h("b", {}, text.slice(from, i)) : text.slice(from, i));
  }
  return h("bdi", { class: "palette-text" }, parts);
}
