// <sandbox-editor>: the open files of a sandbox as tabs. It is hidden while there are none.
import "../css/editor.css";
import { onResume } from "../js/page_lifecycle.js";
import { Files } from "../files/api.js";
import { ask } from "../files/dialog.js";
import { button, command, download, h, icon, keyName } from "../js/dom.js";
import { lastPane } from "../js/last_pane.js";
import { throttle } from "../js/timers.js";
import { iconOf } from "../files/kinds.js";
import { menuButton, openMenu } from "../files/menu.js";
import { nameElement, plainName, textElement } from "../files/names.js";
import { baseOf, decodeText, encodePath, join, parentOf, relative, tidy, within } from "../files/paths.js";
import { watchOf } from "../files/watch.js";
import { Drafts } from "./drafts.js";
import { KeptTabs } from "./kept_tabs.js";
import { splitter } from "./splitter.js";
import { Tab } from "./tab.js";
import { linkItems, tabItems } from "./editor_menus.js";

const mostTabs = 24;
const survived = 500; // ms after which a rendered preview counts as harmless
const present = 5 * 60_000; // ms after the last input in which the user counts as present

class SandboxEditor extends HTMLElement {
  static observedAttributes = ["data-state"];
  #tabs = [];
  #shown = null;
  #started = false;
  #changedPaths = new Set();
  #lastUse = Date.now();

  connectedCallback() {
    this.#started = false;
    this.away = new AbortController();
    this.home = encodePath(this.dataset.home || "/");
    this.user = "";
    this.files = new Files(this.dataset.base, this.home, this.dataset.box);
    this.drafts = new Drafts(this.owner);
    this.kept = new KeptTabs(localStorage, this.owner);
    this.watch = watchOf(this.files);
    this.wrap = localStorage.getItem("editor wrap") === "true";
    this.#draw();
    this.#listen();
    if (this.running) this.#start();
  }

  disconnectedCallback() {
    this.away.abort();
    this.watch.drop(this);
    for (const tab of this.#tabs) {
      tab.keep();
      tab.end();
    }
    this.#tabs = [];
    this.#shown = null;
    this.#occupy(false);
  }

  attributeChangedCallback(_, before, now) {
    if (before === now || !this.list || !this.running) return;
    if (!this.#started) this.#start();
    else this.#refreshAll();
  }

  get running() {
    return ["files", "running"].includes(this.dataset.state);
  }

  #draw() {
    this.back = button("left", "Back to the files", () => this.#showTree(), { class: "button bare low square editor-back" });
    this.list = h("div", { class: "tab-list", role: "tablist", "aria-label": "Open files", keydown: (event) => this.#moveByKey(event) });
    this.crumb = h("span", { class: "editor-path clip" });
    this.source = h("button", { type: "button", class: "chip", click: () => this.#setMode("source") }, "Source");
    this.look = h("button", { type: "button", class: "chip", click: () => this.#setMode("preview") }, "Preview");
    this.modes = h("div", { class: "chips", role: "group", "aria-label": "Show" }, this.source, this.look);
    this.tools = h("span", { class: "editor-tools" });
    this.saver = h("button", { type: "button", class: "button low", title: `Save (${keyName("S")})`, click: () => this.#shown?.save() }, icon("save"), h("span", { class: "word" }, "Save"));
    this.more = menuButton(button("dots", "More"), () => tabItems(this, this.#shown), { label: "File" });
    this.links = menuButton(h("button", { type: "button", class: "button bare low" }, icon("open"), "Links"), () => linkItems(this, this.#shown), { label: "Links" });
    this.line = h("button", { type: "button", class: "status-item", title: "Go to a line", click: () => this.#shown?.code?.askLine() });
    this.status = h("div", { class: "editor-status" });
    this.places = h("div", { class: "editor-places" });
    const edge = this.parentElement?.querySelector(":scope > sandbox-files") && splitter(this); // they share a pane
    this.replaceChildren(...[edge].filter(Boolean),
      h("div", { class: "tabs editor-tabs", "data-commands": "Open files" }, this.back, this.list),
      h("div", { class: "editor-bar", "data-commands": "File" }, this.crumb, this.tools, this.links, this.modes, this.saver, this.more), this.places, this.status);
    this.hidden = true;
  }

  #listen() {
    const { signal } = this.away;
    document.addEventListener("sandboxd:open", (event) => this.#openRequested(event.detail), { signal });
    document.addEventListener("sandboxd:editor", () => this.#showEditor(), { signal });
    document.addEventListener("sandboxd:moved", (event) => this.#moved(event.detail), { signal });
    document.addEventListener("sandboxd:gone", (event) => this.#gone(event.detail.paths), { signal });
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#keepAll() : this.#refreshAll()), { signal });
    addEventListener("pagehide", () => this.#unload(), { signal });
    addEventListener("focus", () => this.#refreshAll(), { signal });
    onResume(() => this.#shown?.state === "error" && this.#shown.temporary && this.#shown.load(), { signal });
    addEventListener("beforeunload", (event) => this.#tabs.some((t) => t.atRisk) && event.preventDefault(), { signal });
    this.addEventListener("keydown", (event) => this.#key(event));
    this.refreshSoon = throttle(() => this.#refreshChanged(), 250);
    for (const kind of ["pointerdown", "pointermove", "keydown", "wheel"]) addEventListener(kind, () => this.#noteUse(), { capture: true, passive: true, signal });
  }

  #openRequested({ encoded, path, line, column, bytes, match, pin = true, keepFocus = false }) {
    this.open(encoded ?? encodePath(path, this.home), { at: { line, column, bytes, match }, pin, keepFocus });
  }

  async #start() {
    this.#started = true;
    this.files.stat(this.home, { quiet: true }).then((entry) => (this.user = entry.owner), () => {}); // without it, saving tells whether the file is writable
    const { tabs = [], shown = "", front = false } = this.kept.read();
    const crashed = this.kept.crashed();
    this.classList.toggle("front", front);
    const known = new Set(await this.drafts.paths());
    const opened = new Set(this.#tabs.map((t) => t.path)); // while the drafts were read
    for (const path of new Set([...tabs.slice(0, mostTabs), ...known])) if (!opened.has(path)) this.#add(path, true).dirty = known.has(path); // offer drafts even if another window wrote the list of tabs
    if (this.#shown) {
      this.#redraw();
      this.#remember();
      return;
    }
    const first = this.#tabs.find((t) => t.path === shown) ?? this.#tabs[0];
    if (first) await this.#show(first, { keepFocus: true, held: first.path === crashed });
    if (lastPane() === "editor" && document.activeElement === document.body) this.#shown?.focus();
  }

  // owner is the key of browser storage: the user and this sandbox.
  get owner() {
    return `${document.body.dataset.person ?? ""} ${this.dataset.box ?? this.dataset.base}`;
  }

  #remember() {
    this.kept.write({ tabs: this.#tabs.filter((t) => t.pinned || t === this.#shown).map((t) => t.path), shown: this.#shown?.path ?? "", front: this.classList.contains("front") });
  }

  // rendering and rendered note the preview in progress (kept_tabs.js).
  rendering(path) {
    this.kept.rendering(path);
  }

  rendered(path) {
    setTimeout(() => this.kept.rendered(path), survived);
  }

  // open shows a file. Without pin it replaces the last unpinned tab.
  async open(path, { at = {}, pin = true, keepFocus = false } = {}) {
    let tab = this.#tabs.find((t) => t.path === path);
    if (!tab) {
      const passing = !pin && this.#tabs.find((t) => !t.pinned && !t.dirty);
      tab = this.#add(path, pin, passing ? this.#tabs.indexOf(passing) : undefined);
      if (passing) this.#drop(passing);
      while (this.#tabs.length > mostTabs) {
        const old = this.#tabs.find((t) => !t.dirty && t !== tab);
        if (!old) break;
        this.#drop(old);
      }
    }
    if (pin) tab.pinned = true;
    this.classList.add("front");
    await this.#show(tab, { at, keepFocus });
  }

  #add(path, pin, at = this.#tabs.length) {
    const tab = new Tab(this, path, pin);
    this.#tabs.splice(at, 0, tab);
    this.places.append(tab.element);
    this.#row(tab);
    return tab;
  }

  #row(tab) {
    const id = `file-${Math.random().toString(36).slice(2, 8)}`;
    tab.element.id = id;
    tab.pick = h("button", { class: "tab-pick", type: "button", role: "tab", "aria-controls": id, tabindex: "-1", click: () => this.#show(tab), dblclick: () => this.#pin(tab) });
    const close = h("button", { class: "tab-close", type: "button", title: "Close (Delete)", "aria-hidden": "true", tabindex: "-1", click: () => this.close(tab) }, icon("close"));
    tab.row = h("div", { class: "tab", role: "presentation" }, tab.pick, close);
    tab.row.addEventListener("auxclick", (event) => event.button === 1 && this.close(tab));
    tab.row.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      openMenu(tabItems(this, tab), { x: event.clientX, y: event.clientY }, { label: plainName(tab.name) });
    });
  }

  #pin(tab) {
    tab.pinned = true;
    this.changed(tab);
  }

  async #show(tab, { at = {}, keepFocus = false, held = false } = {}) {
    this.#shown = tab;
    for (const t of this.#tabs) t.element.hidden = t !== tab;
    this.#redraw();
    const covers = !document.activeElement?.checkVisibility(); // a narrow pane shows the tree or the editor
    this.#remember();
    if (held) tab.askBeforeRendering();
    else if (tab.state === "idle" || tab.state === "error") await tab.load(at);
    else {
      await tab.loading; // a second click during loading wants the focus
      if (at.line) await tab.goTo(at);
    }
    if (this.#shown !== tab) return;
    if (!keepFocus || covers) tab.focus();
    tab.view?.shown?.();
    tab.row.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  // changed redraws after a tab changed.
  changed(tab) {
    if (this.#tabs.includes(tab)) this.#redraw();
  }

  #redraw() {
    const had = this.list.contains(document.activeElement);
    this.#occupy(this.#tabs.length > 0);
    this.list.replaceChildren(...this.#tabs.map((t) => t.row));
    for (const t of this.#tabs) this.#drawTab(t);
    if (had) this.#shown?.pick.focus();
    this.#drawBar();
    this.watch.want(this, [...new Set([this.#shown, ...this.#tabs].filter((t) => t && t.state === "ready").map((t) => parentOf(t.real)))], (path) => this.#changedOnDisk(path));
  }

  // #occupy tells the page whether a file is open.
  #occupy(open) {
    if (this.hidden === !open) return;
    this.hidden = !open;
    this.parentElement?.classList.toggle("editing", open);
    document.dispatchEvent(new CustomEvent("sandboxd:editing", { detail: open }));
  }

  #drawTab(t) {
    const look = iconOf({ name: plainName(t.name), type: "file" });
    const ambiguous = this.#tabs.some((o) => o !== t && o.name === t.name);
    const here = t === this.#shown;
    t.pick.replaceChildren(...[
      h("span", { class: `glyph${look.tint ? ` tint-${look.tint}` : ""}` }, icon(look.icon)), nameElement(t.name, "clip"),
      ambiguous && h("span", { class: "target" }, nameElement(baseOf(parentOf(t.path)))),
      t.dirty && h("span", { class: "dirty", title: "Not saved" }, icon("dot"), h("span", { class: "visually-hidden" }, "not saved")),
    ].filter(Boolean));
    t.pick.title = decodeText(t.path);
    t.pick.setAttribute("aria-selected", String(here));
    t.pick.tabIndex = here ? 0 : -1;
    t.row.classList.toggle("passing", !t.pinned);
    t.row.classList.toggle("lost", Boolean(t.gone));
    t.element.setAttribute("aria-label", plainName(t.name));
  }

  #drawBar() {
    const t = this.#shown;
    if (!t) return;
    this.crumb.replaceChildren(textElement(tidy(t.path, this.home, "whole" in this.dataset)));
    this.crumb.title = decodeText(t.path);
    this.modes.hidden = !t.both;
    this.source.setAttribute("aria-pressed", String(t.mode === "source"));
    this.look.setAttribute("aria-pressed", String(t.mode === "preview"));
    this.saver.hidden = !t.code || Boolean(t.readOnly);
    this.saver.disabled = !(t.dirty || t.gone || t.comparing) || t.saving;
    this.saver.classList.toggle("going", Boolean(t.saving));
    this.saver.classList.toggle("primary", !this.saver.disabled);
    this.tools.replaceChildren(...[t.view?.note && h("span", { class: "quiet" }, t.view.note), t.view?.tools].filter(Boolean));
    this.links.hidden = !t.view?.links?.length;
    this.#drawStatus(t);
  }

  #drawStatus(t) {
    this.status.hidden = !t.code || t.mode === "preview";
    if (this.status.hidden || !t.where) return;
    const { line, column, chosen, language } = t.where;
    this.line.textContent = `Ln ${line}, Col ${column}${chosen ? ` (${chosen} selected)` : ""}`;
    const indent = t.indent === "\t" ? "Tabs" : `Spaces: ${t.indent.length}`;
    const ends = { "\n": "LF", "\r\n": "CRLF", mixed: "Mixed line endings" }[t.how.eol];
    const text = [indent, `${t.how.encoding}${t.how.bom && t.how.encoding === "UTF-8" ? " with BOM" : ""}`, ends, language].map((s) => h("span", { class: "status-item" }, s));
    this.status.replaceChildren(this.line, h("span", { class: "status-end" }, text));
  }

  moved(tab, where) {
    tab.where = where;
    if (tab === this.#shown) this.#drawStatus(tab);
  }

  // likes returns the user's last mode for a kind of file.
  likes(kind) {
    return localStorage.getItem(`editor ${kind}`) ?? "preview";
  }

  async #setMode(mode) {
    const tab = this.#shown;
    if (!tab?.both) return;
    localStorage.setItem(`editor ${tab.kind}`, mode);
    await tab.setMode(mode);
    tab.focus();
  }

  // close closes a tab, after asking about unsaved work. It says whether the tab was closed.
  async close(tab) {
    if (tab.dirty) {
      if (tab.state === "idle") await this.#show(tab);
      const answer = await ask({
        title: `Save “${plainName(tab.name)}”?`, text: "Otherwise your changes will be lost.",
        buttons: [{ value: "", text: "Cancel" }, { value: "drop", text: "Don’t save" }, { value: "save", text: "Save", kind: "primary", usual: true }],
      });
      if (!answer || (answer === "save" && !(await tab.save()))) return false;
      if (answer === "drop") await tab.forget();
    }
    this.#drop(tab);
    return true;
  }

  async closeOthers(tab) {
    for (const other of [...this.#tabs]) if (other !== tab && !(await this.close(other))) return;
  }

  // dismiss closes the tab of something that is not a file.
  dismiss(tab) {
    this.#drop(tab);
  }

  get tabs() {
    return this.#tabs;
  }

  #drop(tab) {
    const at = this.#tabs.indexOf(tab);
    if (at < 0) return;
    this.#tabs.splice(at, 1);
    tab.end();
    tab.row.remove();
    if (tab === this.#shown) {
      this.#shown = null;
      const next = this.#tabs[at] ?? this.#tabs[at - 1];
      if (next) this.#show(next);
      else this.#showTree();
    }
    this.#redraw();
    this.#remember();
  }

  // #showTree returns to the tree, where that is a pane of its own or this one is narrow.
  #showTree() {
    this.classList.remove("front");
    this.#remember();
    document.dispatchEvent(new CustomEvent("sandboxd:tree"));
    document.querySelector("sandbox-files [role=tree]")?.focus();
  }

  #showEditor() {
    this.classList.add("front");
    this.#remember();
    this.#shown?.focus();
  }

  #moveByKey(event) {
    const at = this.#tabs.indexOf(this.#shown);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: this.#tabs.length - 1 }[event.key];
    if (to !== undefined) this.#show(this.#tabs.at(to % this.#tabs.length), { keepFocus: true }).then(() => this.#shown?.pick.focus());
    else if (event.key === "Delete") this.close(this.#shown);
    else return;
    event.preventDefault();
  }

  #key(event) {
    if (!command(event) || event.altKey || event.key.toLowerCase() !== "s") return;
    event.preventDefault();
    this.#shown?.save();
  }

  #changedOnDisk(path) {
    for (const t of this.#tabs) if (!path || parentOf(t.real) === path) this.#changedPaths.add(t);
    this.refreshSoon();
  }

  #refreshChanged() {
    if (!this.running || document.hidden || Date.now() - this.#lastUse > present) return;
    for (const t of this.#changedPaths) if (this.#tabs.includes(t)) t.refresh();
    this.#changedPaths.clear();
  }

  // #noteUse records input. Reading a file counts as use of the sandbox, so a forgotten page must not refresh.
  #noteUse() {
    const away = Date.now() - this.#lastUse > present;
    this.#lastUse = Date.now();
    if (away) this.refreshSoon();
  }

  #refreshAll() {
    this.#changedOnDisk(null);
  }

  #unload() {
    this.kept.rendered();
    this.#keepAll();
  }

  #keepAll() {
    for (const t of this.#tabs) t.keep();
  }

  async #moved({ from, to }) {
    const tabs = this.#tabs.filter((t) => within(t.path, from));
    for (const t of tabs) {
      const path = t.path === from ? to : join(to, relative(t.path, from));
      Object.assign(t, { path, real: t.real === t.path ? path : t.real, name: baseOf(path) });
    }
    this.#redraw();
    this.#remember();
    await this.drafts.move(from, to); // including drafts of tabs that were not loaded yet
    for (const t of tabs) t.keep();
  }

  // unsaved returns the unsaved work, also of files that are not loaded yet: [{path, text}].
  unsaved() {
    return Promise.all(this.#tabs.filter((t) => t.dirty).map(async (t) => ({ path: t.path, text: t.code ? t.mine : ((await this.drafts.get(t.path))?.text ?? "") })));
  }

  #gone(paths) {
    for (const t of [...this.#tabs]) {
      if (!paths.some((p) => within(t.path, p))) continue;
      if (t.dirty) t.refresh();
      else this.#drop(t);
    }
  }

  reveal(path) {
    document.dispatchEvent(new CustomEvent("sandboxd:reveal", { detail: { encoded: path } }));
  }

  download(tab) {
    download(this.files.url(tab.real), decodeText(tab.name));
  }

  setWrap(on) {
    this.wrap = on;
    localStorage.setItem("editor wrap", String(on));
    for (const t of this.#tabs) t.code?.configure({ wrap: on });
  }
}

customElements.define("sandbox-editor", SandboxEditor);
