// <sandbox-terminals>: tabs with a terminal each. Removing it from the page disconnects the terminals, so that updates can
// replace it.
import { mount } from "../terminal/terminal.js";
import { announce } from "./announce.js";
import { h, icon } from "./dom.js";
import { lastPane } from "./last_pane.js";
import { preference } from "./preferences.js";
import { socketURL } from "./reconnect.js";
import { cleanTitle, freshName, keepsTerminals, labelOf, merge, tabNameOf, neighbour } from "./tabs.js";
import { scrollbackOf } from "../terminal/scrollback_text.js";
import { filesOf } from "./terminal_files.js";
import { terminalMenu } from "./terminal_menu.js";
import { renameIn } from "./tab_rename.js";
import { toast } from "./toast.js";

const refreshEvery = 15_000; // ms; other windows open and close terminals too

// Connection state → tone, icon, label.
const stateLabels = {
  connecting: ["busy", "state-busy", "Connecting…"],
  connected: ["good", "state-running", "Connected"],
  silent: ["busy", "state-busy", "No answer…"],
  reconnecting: ["busy", "state-busy", "Reconnecting…"],
  asleep: ["still", "state-asleep", "Asleep"],
  frozen: ["still", "state-frozen", "Frozen"],
  waking: ["busy", "state-busy", "Waking…"],
  closed: ["still", "state-stopped", "Ended"],
  deleted: ["still", "state-stopped", "Deleted"],
};

class SandboxTerminals extends HTMLElement {
  #tabs = new Map(); // name → {tab, pick, screen, terminal, state, title, viewers, fresh}
  #shown = "";
  #kind = "";
  #labels = {}; // the user's names, by tab
  #away = new AbortController();

  connectedCallback() {
    this.#away = new AbortController();
    this.list = h("div", { class: "tab-list", role: "tablist", "aria-label": "Terminals" });
    const add = h("button", { class: "button bare square low", type: "button", title: "New terminal", "aria-label": "New terminal" }, icon("plus"));
    this.end = h("div", { class: "tabs-end" });
    this.screens = h("div", { class: "screens" });
    const menu = terminalMenu({ terminal: () => this.#tabs.get(this.#shown)?.terminal, rename: () => this.#rename(this.#shown) });
    this.replaceChildren(h("div", { class: "tabs", "data-commands": "Terminal" }, this.list, add, this.end, menu), this.screens);
    this.#labels = JSON.parse(this.dataset.labels || "{}") ?? {};
    this.files = filesOf(this.closest(".panes"), () => this.#folder(), () => this.#tabs.get(this.#shown)?.state === "connected");
    add.addEventListener("click", () => this.#new());
    this.list.addEventListener("keydown", (event) => this.#moveByKey(event));
    const names = this.dataset.names.split(" ").filter(Boolean);
    for (const name of names) this.#add(name);
    const last = sessionStorage.getItem(this.#key());
    this.#show(names.includes(last) ? last : names[0], lastPane() === "terminal");
    this.#pollList();
  }

  disconnectedCallback() {
    this.#away.abort();
    for (const t of this.#tabs.values()) t.terminal?.dispose();
    this.#tabs.clear();
  }

  // text returns the lines of the visible terminal, for tests.
  text() {
    return this.#tabs.get(this.#shown)?.terminal?.text() ?? [];
  }

  // rejoin reconnects terminals that were asleep, after something else woke the sandbox.
  rejoin() {
    for (const t of this.#tabs.values()) t.terminal?.rejoin();
  }

  // setPaneKind sets the state of the sandbox, as the kind of pane that it would show.
  setPaneKind(kind) {
    this.#kind = kind;
    for (const t of this.#tabs.values()) t.terminal?.rest(kind);
  }

  // isAsleep says whether the sandbox is asleep, or is being woken from one of these terminals.
  get isAsleep() {
    return [...this.#tabs.values()].some((t) => ["asleep", "frozen", "waking"].includes(t.state));
  }

  #key() {
    return `tab ${this.dataset.path}`;
  }

  #names() {
    return [...this.#tabs.keys()];
  }

  #add(name) {
    const id = `screen-${name}`;
    const pick = h("button", { class: "tab-pick", type: "button", role: "tab", "aria-controls": id, tabindex: "-1" });
    const close = h("button", { class: "tab-close", type: "button", title: "Close", "aria-label": `Close ${labelOf(name)}` }, icon("close"));
    const tab = h("div", { class: "tab", role: "presentation" }, pick, close);
    const screen = h("div", { class: "screen", id, role: "tabpanel", "aria-label": labelOf(name), hidden: "" });
    pick.addEventListener("click", () => this.#show(name));
    pick.addEventListener("dblclick", () => this.#rename(name));
    pick.addEventListener("keydown", (event) => event.key === "F2" && this.#rename(name));
    tab.addEventListener("auxclick", (event) => event.button === 1 && this.#close(name));
    close.addEventListener("click", () => this.#close(name));
    this.list.append(tab);
    this.screens.append(screen);
    this.#tabs.set(name, { tab, pick, screen, terminal: null, state: "connecting", title: "", viewers: 1, fresh: false });
    this.#draw(name);
  }

  #new() {
    const name = freshName(this.#names());
    if (!name) return announce("This sandbox has the maximum number of terminals.");
    if (this.#labels[name]) this.#label(name, ""); // left from a terminal that ended without being closed
    this.#add(name);
    this.#tabs.get(name).fresh = true;
    this.#show(name);
  }

  // Names are shared by everyone with access to the sandbox.
  #rename(name) {
    const t = this.#tabs.get(name);
    if (t) renameIn(t.tab, this.#labels[name] ?? "", labelOf(name), (label) => this.#label(name, label));
  }

  // #url returns the address of a terminal, or of all, in the very sandbox that the page shows.
  #url(name = "", rest = "") {
    return `${this.dataset.path}${encodeURIComponent(name)}${rest}?sandbox_id=${this.dataset.box}`;
  }

  async #label(name, label) {
    const before = this.#labels[name];
    this.#labels[name] = label;
    this.#draw(name);
    const answer = await fetch(this.#url(name, "/name"), {
      method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ name: label }),
    }).catch(() => null);
    if (answer?.ok) return;
    this.#labels[name] = before;
    this.#draw(name);
    const problem = await answer?.json().catch(() => null);
    toast(problem?.detail ?? "The terminal could not be renamed.", { bad: true });
  }

  // #folder resolves to the working directory of the visible terminal.
  async #folder() {
    const { terminals } = await this.#list();
    return terminals.find((t) => t.name === this.#shown)?.folder ?? "";
  }

  async #list() {
    const answer = await fetch(this.#url().replace("/?", "?"), { signal: this.#away.signal });
    if (!answer.ok || answer.redirected) throw new Error("there is no list");
    return answer.json();
  }

  #show(name, focus = true) {
    this.#shown = name;
    sessionStorage.setItem(this.#key(), name);
    for (const [other, t] of this.#tabs) {
      const here = other === name;
      t.screen.hidden = !here;
      t.pick.setAttribute("aria-selected", String(here));
      t.pick.tabIndex = here ? 0 : -1;
    }
    const t = this.#tabs.get(name);
    if (!t) return;
    t.terminal ??= this.#mount(name, t);
    t.terminal.fit();
    if (focus) t.terminal.focus();
    t.tab.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.#drawEnd();
  }

  #mount(name, t) {
    const terminal = mount(t.screen, {
      url: socketURL(this.#url(name, "/ws")).href,
      tab: name,
      wake: t.fresh, // the user has just asked for it
      files: this.files,
      sandbox: { id: this.dataset.box, name: decodeURIComponent(this.dataset.path.split("/")[2]) },
      history: (part) => scrollbackOf(this.#url(name, "/text"), part),
      copyOnSelect: () => preference("copy_on_select", true),
      onState: (state) => {
        if (t.state !== state && name === this.#shown && state !== "connected") announce(stateLabels[state]?.[2] ?? state);
        t.state = state;
        this.#draw(name);
      },
      onTitle: (title) => {
        t.title = cleanTitle(title);
        this.#draw(name);
      },
    });
    terminal.rest(this.#kind);
    return terminal;
  }

  async #close(name) {
    if (!confirm("Close this terminal? Programs running in it will be stopped.")) return;
    const answer = await fetch(this.#url(name, "/close"), { method: "POST", redirect: "manual" });
    if (answer.type === "opaqueredirect" || answer.ok || answer.status === 404) this.#drop(name);
    else announce("The terminal could not be closed.");
  }

  #drop(name) {
    const t = this.#tabs.get(name);
    if (!t) return;
    const next = neighbour(this.#names(), name);
    t.terminal?.dispose();
    t.tab.remove();
    t.screen.remove();
    this.#tabs.delete(name);
    if (name === this.#shown && next) this.#show(next);
  }

  #moveByKey(event) {
    if (event.target.matches("input")) return;
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const names = this.#names();
    const next = names.at((names.indexOf(this.#shown) + step) % names.length);
    this.#show(next);
    this.#tabs.get(next).pick.focus();
    event.preventDefault();
  }

  #draw(name) {
    const t = this.#tabs.get(name);
    if (!t) return;
    const word = h("span", { class: "clip" });
    word.textContent = tabNameOf(name, t.title, this.#labels[name]);
    t.pick.title = [this.#labels[name] && t.title, "Double-click or F2 to rename"].filter(Boolean).join("\n");
    const parts = [word];
    if (t.terminal && t.state !== "connected") parts.unshift(icon(stateLabels[t.state]?.[1] ?? "state-todo"));
    t.pick.replaceChildren(...parts);
    if (name === this.#shown) this.#drawEnd();
  }

  #drawEnd() {
    const t = this.#tabs.get(this.#shown);
    if (!t) return;
    const [tone, shape, text] = stateLabels[t.state] ?? ["still", "state-todo", t.state];
    const state = h("span", { class: `state link-state tone-${tone}`, "data-state": t.state }, icon(shape));
    state.append(t.viewers > 1 && t.state === "connected" ? `${text} · ${t.viewers} viewers` : text);
    this.end.replaceChildren(state);
  }

  #pollList() {
    const timer = setInterval(() => this.#refreshList(), refreshEvery);
    this.#away.signal.addEventListener("abort", () => clearInterval(timer));
    window.addEventListener("focus", () => this.#refreshList(), { signal: this.#away.signal });
    this.#refreshList();
  }

  async #refreshList() {
    if (document.hidden) return;
    try {
      const { terminals, labels } = await this.#list();
      this.#labels = labels ?? {};
      this.#merge(terminals);
    } catch {
      // The connection's state already tells when sandboxd is unreachable.
    }
  }

  #merge(open) {
    const names = open.map((t) => t.name);
    const fresh = this.#names().filter((name) => this.#tabs.get(name).fresh);
    const { add, drop } = merge(this.#names(), names, fresh);
    for (const name of drop) this.#drop(name);
    for (const name of add) this.#add(name);
    for (const { name, viewers, title } of open) {
      const t = this.#tabs.get(name);
      t.fresh = false;
      t.viewers = viewers;
      t.title ||= cleanTitle(title);
      this.#draw(name);
    }
  }
}

customElements.define("sandbox-terminals", SandboxTerminals);

// Terminals stay in the page when an update brings a pane that they cover themselves: the screen stays readable while the
// sandbox is asleep, and the same terminal continues when it wakes.
document.addEventListener("htmx:partialBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  if (target.id !== "pane-terminal" || target.dataset.kind !== "terminals") return;
  const terminals = target.querySelector("sandbox-terminals");
  const kind = fragment.firstElementChild?.dataset.kind;
  if (!terminals || !keepsTerminals(kind, terminals.isAsleep)) return;
  event.detail.shouldSwap = false;
  terminals.setPaneKind(kind);
  if (kind === "terminals") terminals.rejoin();
});
