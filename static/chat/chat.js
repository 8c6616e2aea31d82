// The chat pane: conversations with agents in one sandbox.
import { announce } from "../js/announce.js";
import { button, h, icon } from "../js/dom.js";
import { live } from "../js/live.js";
import { parseJSON } from "../js/storage.js";
import { toast } from "../js/toast.js";
import { Conversations } from "./api.js";
import { Composer } from "./composer.js";
import { viewOf } from "./items.js";
import { Model, usageText } from "./model.js";
import { addIcons } from "./icons.js";

addIcons();

const near = 80; // px from the end: new text is followed
const again = 1000; // ms before what ended is followed again
const modes = { ask: "Ask before changes", risky: "Ask before risky acts", auto: "Don't ask" };
const states = { idle: "", working: "Working…", asking: "Waits for you", failed: "Failed" };

const selectOf = (select) => h("span", { class: "select" }, select, icon("down"));

// Chat shows one conversation at a time in an element with data-base, data-box, data-files and data-models (JSON: names).
export class Chat {
  #model = new Model();
  #views = new Map(); // n → view
  #channel = null;
  #id = "";
  #all = [];
  #follows = true; // the end of the conversation is in view, and stays there while it grows
  #height = 0; // of the items, when the list was scrolled last
  #grown = new ResizeObserver(() => this.#follows && this.#toEnd());

  constructor(root) {
    this.root = root;
    this.api = new Conversations(root.dataset.base, root.dataset.box);
    this.items = h("div", { class: "chat-items" });
    this.list = h("div", { class: "chat-list", role: "log", "aria-label": "Conversation", tabindex: "0" }, this.items);
    this.foot = h("div", { class: "chat-foot" });
    this.waiting = h("ul", { class: "chat-queue", "aria-label": "Messages that wait" });
    this.composer = new Composer({ files: root.dataset.files, send: (m) => this.#send(m), stop: () => this.#do(() => this.api.cancel(this.#id)) });
    root.replaceChildren(this.#head(), this.list, this.foot, this.waiting, this.composer.element);
    this.list.addEventListener("scroll", () => this.#scrolled());
    this.#grown.observe(this.items);
    this.#grown.observe(this.list);
    this.#start();
  }

  dispose() {
    this.#channel?.close();
    this.#channel = null;
  }

  get names() {
    return JSON.parse(this.root.dataset.models || "[]");
  }

  // refresh takes up what the element says now.
  refresh() {
    this.#frame();
  }

  #toEnd() {
    this.#follows = true;
    this.list.scrollTop = this.list.scrollHeight;
  }

  // #scrolled tells scrolling by the person, which ends or resumes the following, from what comes of a change of the size.
  #scrolled() {
    const { scrollTop, scrollHeight, clientHeight } = this.list;
    const end = scrollHeight - scrollTop - clientHeight < near;
    if (end || scrollHeight === this.#height) this.#follows = end;
    this.#height = scrollHeight;
    if (scrollTop < near) this.#more();
  }

  #head() {
    this.pick = h("select", { class: "input chat-pick", "aria-label": "Conversation", change: () => this.#open(this.pick.value) });
    this.model = h("select", { class: "input", "aria-label": "Model", change: () => this.#set({ model: this.model.value }) });
    this.mode = h("select", { class: "input", "aria-label": "When the agent asks", change: () => this.#set({ mode: this.mode.value }) }, Object.entries(modes).map(([id, text]) => h("option", { value: id }, text)));
    this.used = h("span", { class: "quiet chat-used" });
    const menu = h("details", { class: "menu" }, h("summary", { class: "button bare square low", title: "Conversation menu", "aria-label": "Conversation menu" }, icon("dots")),
      h("div", { class: "menu-list" }, this.#menuItem("pencil", "Rename…", () => this.#rename()), this.#menuItem("bell", "Notify me when it asks", () => this.#notify()), this.#menuItem("trash", "Delete…", () => this.#remove())));
    return h("div", { class: "chat-head" }, selectOf(this.pick), h("div", { class: "chat-settings" }, selectOf(this.model), selectOf(this.mode), this.used), button("plus", "New conversation", () => this.#new()), menu);
  }

  #menuItem(name, text, act) {
    return h("button", { type: "button", class: "menu-item", click: (event) => {
      event.target.closest("details").open = false;
      act();
    } }, icon(name), text);
  }

  async #start() {
    await this.#do(async () => {
      this.#all = await this.api.list();
      const last = sessionStorage.getItem(this.#key);
      if (this.#all.length) await this.#open(this.#all.some((c) => c.id === last) ? last : this.#all[0].id);
      else this.#new();
    });
  }

  get #key() {
    return `chat ${this.api.box}`;
  }

  // #do runs what may fail, and says why it did.
  async #do(act) {
    try {
      return await act();
    } catch (err) {
      toast(err.message, { bad: true });
      return undefined;
    }
  }

  #new() {
    this.dispose();
    this.#id = "";
    this.#model = new Model();
    this.#draw([]);
    this.composer.focus();
  }

  async #open(id) {
    this.dispose();
    this.#id = id;
    sessionStorage.setItem(this.#key, id);
    const view = await this.#do(() => this.api.view(id));
    if (!view || this.#id !== id) return;
    this.#model = new Model();
    this.#model.load(view);
    this.#draw(this.#model.list);
    this.#toEnd();
    this.#follow();
  }

  #follow() {
    if (!this.#id || !this.root.isConnected) return;
    const channel = live.open(this.api.topic(this.#id), `after=${this.#model.rev}`);
    this.#channel = channel;
    channel.addEventListener("lost", () => (channel.seen = `after=${this.#model.rev}`));
    channel.addEventListener("change", ({ data }) => this.#channel === channel && this.#take(JSON.parse(data)));
    channel.addEventListener("ended", ({ data }) => this.#channel === channel && this.#ended(parseJSON(data)));
  }

  // #ended follows again: the server was restarted, or the page was too slow.
  #ended(problem) {
    this.dispose();
    if (problem.status === 404) return this.#start();
    const id = this.#id;
    setTimeout(() => this.#id === id && !this.#channel && this.#follow(), again);
  }

  #take(change) {
    if (change.rev <= this.#model.rev && !change.gone) return;
    const was = this.#model.conversation?.state;
    const what = this.#model.take(change);
    if (!what) return this.#open(this.#id);
    if (what.gone) return this.#start();
    for (const n of what.items) this.#show(this.#model.items.get(n));
    if (what.conversation || what.queue) this.#frame();
    if (this.#follows) this.#toEnd();
    this.#tell(was);
  }

  // #show draws an item, in its place.
  #show(item) {
    const view = this.#views.get(item.n);
    if (view) return view.update(item);
    const fresh = viewOf(item, this.#acts);
    this.#views.set(item.n, fresh);
    const after = [...this.#views.keys()].filter((n) => n > item.n);
    const next = after.length ? this.#views.get(Math.min(...after)).element : null;
    this.items.insertBefore(fresh.element, next);
  }

  #acts = {
    edit: (n) => this.composer.edit(this.#model.items.get(n).text, (text) => this.#branch(() => this.api.edit(this.#id, n, text))),
    retry: (n) => this.#branch(() => this.api.edit(this.#id, n, "")),
    branch: (n) => this.#branch(() => this.api.branch(this.#id, n)),
    answer: (question, text) => this.#do(() => this.api.answer(this.#id, question, text)),
    undo: (turn) => this.#do(() => this.api.undo(this.#id, turn)),
    redo: (turn) => this.#do(() => this.api.redo(this.#id, turn)),
  };

  async #branch(act) {
    const c = await this.#do(act);
    if (!c) return false;
    this.#all.unshift(c);
    await this.#open(c.id);
    return true;
  }

  async #more() {
    const first = this.#model.first;
    if (this.loading || !this.#id || first <= 1 || first === Infinity) return;
    this.loading = true;
    const view = await this.#do(() => this.api.view(this.#id, first));
    this.loading = false;
    if (!view || !view.items.length) return;
    const before = this.list.scrollHeight;
    this.#model.older(view.items);
    for (const item of this.#model.list) if (!this.#views.has(item.n)) this.#show(item);
    this.list.scrollTop += this.list.scrollHeight - before;
  }

  #draw(items) {
    this.#views.clear();
    this.items.replaceChildren();
    for (const item of items) this.#show(item);
    this.#frame();
  }

  // #frame draws all but the items.
  #frame() {
    const c = this.#model.conversation;
    if (c) this.#all = [c, ...this.#all.filter((o) => o.id !== c.id)];
    const title = (o) => [o.title || "New conversation", states[o.state]].filter(Boolean).join(" · ");
    this.pick.replaceChildren(...(c ? [] : [h("option", { value: "", selected: true }, "New conversation")]), ...this.#all.map((o) => h("option", { value: o.id, selected: o.id === c?.id }, title(o))));
    const model = c?.model ?? this.names[0] ?? "";
    const names = model && !this.names.includes(model) ? [model, ...this.names] : this.names;
    this.model.replaceChildren(...names.map((n) => h("option", { value: n, selected: n === model }, n)));
    this.model.parentElement.hidden = !names.length;
    this.mode.value = c?.mode ?? "risky";
    this.used.textContent = c ? usageText(c.used) : "";
    const busy = c?.state === "working" || c?.state === "asking";
    this.composer.busy(busy);
    this.foot.replaceChildren(...this.#footer(c, busy));
    this.waiting.replaceChildren(...this.#model.queue.map((q, i) => this.#waitingItem(q, i)));
    this.root.dataset.chatState = c?.state ?? "";
  }

  #footer(c, busy) {
    if (!this.#views.size && !this.#model.queue.length) return [this.#welcome()];
    if (busy && c.state === "working") return [h("p", { class: "chat-working", role: "status" }, icon("state-busy"), "Working…")];
    if (c?.state === "failed") {
      return [h("div", { class: "chat-failed", role: "alert" }, icon("warn"), h("p", {}, c.problem || "The turn failed."), h("button", { type: "button", class: "button", click: () => this.#do(() => this.api.resume(this.#id)) }, "Resume"))];
    }
    return [];
  }

  #welcome() {
    if (this.names.length) return h("div", { class: "chat-welcome" }, h("p", {}, "Tell the agent what to do in this sandbox. It can run commands, read and change files, and ask you."));
    return h("div", { class: "chat-welcome" }, h("h2", {}, "No model yet"),
      h("p", {}, "Add a provider: paste an API key, or enter the address of a model server. It takes a minute."),
      h("a", { class: "button primary", href: "/settings/models" }, "Add a provider"),
      h("p", { class: "quiet" }, "Or see how the chat works, with a demonstration that follows a script."),
      h("button", { type: "button", class: "button", click: () => this.#send({ text: "Show me what you can do." }, "demonstration") }, "Start the demonstration"));
  }

  #waitingItem(q, i) {
    const ids = this.#model.queue.map((o) => o.id);
    const order = (next) => this.#do(() => this.api.arrange(this.#id, next));
    return h("li", {}, h("span", { class: "clip" }, q.text),
      i > 0 && button("up", "Earlier", () => order([...ids.slice(0, i - 1), q.id, ids[i - 1], ...ids.slice(i + 1)])),
      button("play", "Send now: the agent stops what it does", () => this.#do(() => this.api.now(this.#id, q.id))),
      button("close", "Delete", () => order(ids.filter((id) => id !== q.id))));
  }

  async #send(message, model = "") {
    const sent = await this.#do(async () => {
      if (!this.#id) {
        const c = await this.api.create({ model: model || this.model.value || "", mode: this.mode.value });
        await this.#open(c.id);
      }
      return this.api.send(this.#id, { id: crypto.randomUUID?.() ?? String(Math.random()), ...message });
    });
    if (sent) this.#toEnd();
    return Boolean(sent);
  }

  async #set(fields) {
    if (this.#id) await this.#do(() => this.api.change(this.#id, fields));
  }

  async #rename() {
    const title = this.#id && prompt("Title of the conversation", this.#model.conversation.title);
    if (title) await this.#set({ title });
  }

  async #remove() {
    if (!this.#id || !confirm(`Delete the conversation “${this.#model.conversation.title}”? It cannot be brought back.`)) return;
    await this.#do(() => this.api.remove(this.#id));
  }

  async #notify() {
    const answer = globalThis.Notification ? await Notification.requestPermission() : "denied";
    toast(answer === "granted" ? "You will be notified while this page is open." : "The browser does not allow notifications here.", { bad: answer !== "granted" });
  }

  // #tell says what the person should know who looks elsewhere.
  #tell(was) {
    const { state, title } = this.#model.conversation ?? {};
    if (state === was) return;
    const words = { asking: "The agent asks you something", failed: "The agent could not continue", idle: "The agent is done" }[state];
    if (!words || was === undefined) return;
    announce(words);
    if (document.hidden && globalThis.Notification?.permission === "granted") {
      const note = new Notification(words, { body: this.#model.question?.data?.title ?? title, tag: this.#id });
      note.addEventListener("click", () => globalThis.focus());
    }
  }
}
