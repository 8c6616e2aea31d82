// The chat pane: conversations with agents in one sandbox.
import { announce } from "../js/announce.js";
import { button, h, icon } from "../js/dom.js";
import { live } from "../js/live.js";
import { parseJSON } from "../js/storage.js";
import { toast } from "../js/toast.js";
import { hurry } from "./slices.js";
import { Agents, isOwn } from "./agents.js";
import { Conversations } from "./api.js";
import { Comments } from "./comments.js";
import { Composer } from "./composer.js";
import { Items } from "./items_list.js";
import { Model, usageText, usageTitle } from "./model.js";
import { addIcons } from "./icons.js";
import { Shown } from "./notify.js";
import { settingsOf } from "./settings.js";
import { redraw } from "./view.js";

addIcons();

const near = 80; // px from the end: new text is followed
const ahead = 8; // heights of the list above what is seen that are there before they are scrolled to
const buffer = 50; // items that wait to be drawn when the page before them is asked for
const again = 1000; // ms before what ended, or could not be loaded, is asked for again
const gone = [403, 404, 410];
const modes = { ask: "Ask before changes", risky: "Ask before risky acts", auto: "Don't ask" };
const states = { idle: "", working: "Working…", asking: "Waits for you", failed: "Failed" };

const pause = () => new Promise((done) => setTimeout(done, again));
const newID = () => crypto.randomUUID?.() ?? String(Math.random());
const selectOf = (select) => h("span", { class: "select" }, select, icon("down"));

// Chat shows one conversation at a time in an element with data-base, data-box, data-files and data-models (JSON: names).
export class Chat {
  #model = new Model();
  #channel = null;
  #lost = false; // the server does not answer
  #id = "";
  #all = [];
  #showing = 0; // counts what was to be shown: what is loaded for an earlier one is not shown any more
  #begun = false; // a conversation is shown, or a new one: until then there is nothing to choose for
  #beginning; // resolves then
  #loading = false; // the page before
  #wanted = {}; // the model and the mode that were chosen for a conversation that has not begun
  #unsent = { key: "", id: "" }; // the last message whose answer has not come, and its name
  #presses = new Map(); // of Run, whose answer has not come: what is run → the name of the run
  #follows = true; // the end of the conversation is in view, and stays there while it grows
  #height = 0; // of the items, when the list was scrolled last
  #shown = new Shown();
  #visible = false;
  #seen = new IntersectionObserver((entries) => {
    this.#visible = entries.at(-1).isIntersecting;
    this.#look();
  });
  #grown = new ResizeObserver(() => (this.#follows ? this.#toEnd() : this.shown.stay()));

  constructor(root) {
    this.root = root;
    this.api = new Conversations(root.dataset.base, root.dataset.box);
    this.agents = new Agents(new Conversations(root.dataset.base.replace(/conversations$/, "agents"), root.dataset.box), (act) => this.#do(act), () => this.#frame());
    this.items = h("div", { class: "chat-items" });
    this.list = h("div", { class: "chat-list", role: "log", "aria-live": "off", "aria-label": "Conversation", tabindex: "0" }, this.items);
    this.shown = new Items(this.items, this.list, this.#acts, () => this.#more());
    this.foot = h("div", { class: "chat-foot" });
    this.waiting = h("ul", { class: "chat-queue", "aria-label": "Messages that wait" });
    this.comments = new Comments();
    this.composer = new Composer({ files: root.dataset.files, comments: this.comments, send: (m) => this.#send(m), stop: () => this.#do(() => this.api.cancel(this.#id)) });
    root.replaceChildren(this.#head(), this.list, this.foot, this.waiting, this.composer.element);
    this.composer.drops(root);
    this.list.addEventListener("scroll", () => this.#scrolled());
    this.#grown.observe(this.items);
    this.#grown.observe(this.list);
    this.#seen.observe(root);
    document.addEventListener("visibilitychange", this.#back);
    this.#beginning = this.#start();
    this.#frame();
  }

  // dispose ends what the chat does. It cannot be used after that.
  dispose() {
    this.#showing++;
    this.#leave();
    this.#seen.disconnect();
    this.#grown.disconnect();
    document.removeEventListener("visibilitychange", this.#back);
    this.#shown.is("");
  }

  // #leave stops following the conversation.
  #leave() {
    this.#channel?.close();
    this.#channel = null;
  }

  // #look tells other tabs what can be seen here.
  #look = () => this.#shown.is(!document.hidden && this.#visible ? this.#id : "");

  #back = () => {
    this.#look();
    if (!document.hidden && this.#begun && !this.names.length) this.#again();
  };

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
    hurry();
    const { scrollTop, scrollHeight, clientHeight } = this.list;
    const end = scrollHeight - scrollTop - clientHeight < near;
    if (end || scrollHeight === this.#height) this.#follows = end;
    this.#height = scrollHeight;
    this.shown.look();
    this.#more();
  }

  #head() {
    this.pick = h("select", { class: "input chat-pick", "aria-label": "Conversation", change: () => this.open(this.pick.value) });
    this.model = h("select", { class: "input", "aria-label": "Model", change: () => this.#set({ model: this.model.value }) });
    this.mode = h("select", { class: "input", "aria-label": "When the agent asks", change: () => this.#set({ mode: this.mode.value }) }, Object.entries(modes).map(([id, text]) => h("option", { value: id }, text)));
    this.used = h("span", { class: "quiet chat-used" });
    this.settings = h("span", { class: "chat-agent-settings" });
    const menu = h("details", { class: "menu" }, h("summary", { class: "button bare square low", title: "Conversation menu", "aria-label": "Conversation menu" }, icon("dots")),
      h("div", { class: "menu-list" }, this.#menuItem("pencil", "Rename…", () => this.#rename()), this.#menuItem("link", "Share…", () => this.#share()), this.#menuItem("layers", "Try it several times…", () => this.#try()), this.#menuItem("bell", "Notify me when it asks", () => this.#notify()), this.#menuItem("trash", "Delete…", () => this.#remove())));
    return h("div", { class: "chat-head" }, selectOf(this.pick), h("div", { class: "chat-settings" }, selectOf(this.model), selectOf(this.mode), this.settings, this.used), button("plus", "New conversation", () => {
      this.#new();
      this.#again();
    }), menu);
  }

  #menuItem(name, text, act) {
    return h("button", { type: "button", class: "menu-item", click: (event) => {
      event.target.closest("details").open = false;
      act();
    } }, icon(name), text);
  }

  async #start() {
    const there = await this.#load(() => this.api.list());
    if (there) {
      this.#know(there);
      return this.#first(sessionStorage.getItem(this.#key));
    }
    if (there === null) return this.#new(); // the server says what is wrong when that is sent
    return this.#frame();
  }

  // #know takes up what the server lists: conversations, and the models for another.
  #know({ conversations, models }) {
    this.#all = conversations;
    if (models) this.root.dataset.models = JSON.stringify(models);
  }

  // #again asks for that once more: a provider may have been added since, on another page.
  async #again() {
    const there = await this.api.list().catch(() => null);
    if (!there) return;
    this.#know(there);
    this.#frame();
  }

  // #first shows a conversation, or the last changed one when it is not there.
  #first(id) {
    const c = this.#all.find((o) => o.id === id) ?? this.#all[0];
    return c ? this.open(c.id) : this.#new();
  }

  // #load loads what is to be shown next, again and again until the server answers. It resolves to null when that is gone, and to undefined
  // when something else is to be shown.
  async #load(ask) {
    const mine = ++this.#showing;
    for (let told = false; ; told = true) {
      let failed = null;
      const got = await ask().catch((err) => (failed = err));
      if (mine !== this.#showing) return undefined;
      if (!failed) return got;
      if (!told) toast(failed.message, { bad: true });
      if (gone.includes(failed.status)) return null;
      await pause();
      if (mine !== this.#showing) return undefined;
    }
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
    this.#showing++;
    this.#clear("");
    this.composer.focus();
    this.agents.show();
  }

  // #clear takes what is shown of another conversation away: its buttons would act in this one.
  #clear(id) {
    this.#leave();
    this.#begun = true;
    this.#id = id;
    this.#wanted = {};
    this.#look();
    this.comments.of(id || "new");
    this.#model = new Model();
    this.#draw([]);
  }

  // open shows a conversation.
  async open(id) {
    if (id !== this.#id) this.#clear(id);
    this.#leave();
    sessionStorage.setItem(this.#key, id);
    const view = await this.#load(() => this.api.view(id));
    if (view === undefined) return;
    if (!view) {
      this.#all = this.#all.filter((c) => c.id !== id);
      return this.#first("");
    }
    this.#model = new Model();
    this.#model.load(view);
    this.#draw(this.#model.list);
    this.#toEnd();
    this.#follow();
  }

  #follow() {
    this.#leave();
    if (!this.#id || !this.root.isConnected) return;
    const channel = live.open(this.api.topic(this.#id), `after=${this.#model.rev}`);
    this.#channel = channel;
    channel.addEventListener("lost", () => {
      channel.seen = `after=${this.#model.rev}`;
      this.#lose(channel, true);
    });
    channel.addEventListener("opened", () => this.#lose(channel, false));
    channel.addEventListener("change", ({ data }) => this.#channel === channel && this.#take(JSON.parse(data)));
    channel.addEventListener("ended", ({ data }) => this.#channel === channel && this.#ended(parseJSON(data)));
  }

  // #lose says whether the server, and so what the agent does, is out of sight.
  #lose(channel, lost) {
    if (this.#channel !== channel || this.#lost === lost) return;
    this.#lost = lost;
    this.#frame();
  }

  // #ended follows again: the server was restarted, or the page was too slow.
  #ended(problem) {
    this.#leave();
    if (gone.includes(problem.status)) return this.#start();
    const mine = this.#showing;
    setTimeout(() => this.#showing === mine && !this.#channel && this.#follow(), again);
  }

  #take(change) {
    if (change.rev === this.#model.rev && !change.gone) return;
    if (change.rev < this.#model.rev && !change.gone) return this.open(this.#id); // the database was put back
    const was = this.#model.conversation?.state;
    const what = this.#model.take(change);
    if (!what) return this.open(this.#id);
    if (what.gone) return this.#start();
    for (const n of what.items) this.shown.show(this.#model.items.get(n));
    if (what.conversation || what.queue) this.#frame();
    this.#tell(was);
  }

  #acts = {
    edit: (n) => this.#edit(this.#id, n),
    retry: (n) => this.#branch(() => this.api.edit(this.#id, n, "")),
    branch: (n) => this.#branch(() => this.api.branch(this.#id, n)),
    answer: (question, text) => this.#do(() => this.api.answer(this.#id, question, text)),
    run: (item, block, code) => this.#run(item, block, code),
    stopRun: (n) => this.#do(() => this.api.stopRun(this.#id, n)),
    comment: (c) => this.comments.add(c) || toast("There are 50 comments already. Send them first.", { bad: true }),
    undo: (turn) => this.#do(() => this.api.undo(this.#id, turn)),
    redo: (turn) => this.#do(() => this.api.redo(this.#id, turn)),
  };

  // #edit edits a message of this conversation, also when another one is shown when that is done.
  #edit(id, n) {
    this.composer.edit(this.#model.items.get(n).text, (text) => this.#branch(() => this.api.edit(id, n, text)));
  }

  // #run runs a block of code, if the code is what the server has too. A request whose answer was lost is sent again by the next press, under the same name: it is the same run.
  async #run(item, block, code) {
    if (block < 0) return toast("This code cannot be told from the text around it. Copy it to run it.", { bad: true });
    const key = `${this.#id} ${item} ${block}`;
    const id = this.#presses.get(key) ?? newID();
    this.#presses.set(key, id);
    const begun = await this.#do(() => this.api.run(this.#id, { id, item, block, code }));
    if (begun) this.#presses.delete(key);
  }

  async #branch(act) {
    const c = await this.#do(act);
    if (!c) return false;
    this.#all.unshift(c);
    await this.open(c.id);
    return true;
  }

  // #more loads the page before what is there while the last of that is drawn, so that scrolling does not wait for it.
  async #more() {
    const [model, first] = [this.#model, this.#model.first];
    if (this.#loading || first <= 1 || this.shown.waiting > buffer || this.list.scrollTop >= ahead * this.list.clientHeight) return;
    this.#loading = true;
    const view = await this.#do(() => this.api.view(this.#id, first));
    if (!view) await pause();
    this.#loading = false;
    if (!view || model !== this.#model) return;
    model.older(view);
    this.shown.older(view.items);
    this.#more();
  }

  #draw(items) {
    this.shown.load(items);
    this.#frame();
  }

  // #frame draws all but the items.
  #frame() {
    const c = this.#model.conversation;
    if (c) this.#all = [c, ...this.#all.filter((o) => o.id !== c.id)];
    const title = (o) => [o.title || "New conversation", states[o.state]].filter(Boolean).join(" · ");
    redraw(this.pick, [this.#id, this.#all.map(title)], () => [...(this.#id ? [] : [h("option", { value: "" }, "New conversation")]), ...this.#all.map((o) => h("option", { value: o.id }, title(o)))]);
    this.pick.value = this.#id;
    const model = c ? c.model || "best" : (this.#wanted.model ?? this.names[0] ?? ""); // as the server has it
    const names = model && !this.names.includes(model) ? [model, ...this.names] : this.names;
    redraw(this.model, names, () => names.map((n) => h("option", { value: n }, n)));
    this.model.value = model;
    this.model.disabled = this.mode.disabled = !this.#begun;
    this.model.parentElement.hidden = !names.length || !isOwn(this.#agent);
    this.agents.models = this.names.length > 0;
    this.mode.value = c?.mode ?? this.#wanted.mode ?? "risky";
    settingsOf(this.settings, c?.settings?.options ?? [], (id, value) => this.#set({ settings: { [id]: value } }));
    this.composer.commands.offer(c?.settings?.commands ?? []);
    this.used.textContent = c ? usageText(c.used) : "";
    this.used.title = c ? usageTitle(c.used) : "";
    const busy = c?.state === "working" || c?.state === "asking";
    this.composer.busy(busy);
    this.shown.busy(busy);
    redraw(this.foot, [this.#id, this.#lost, c?.state, c?.problem, this.#begun, this.#empty, this.names.length > 0, c?.agent], () => this.#footer(c, busy));
    this.waiting.dataset.caption = busy ? "Sent when the agent is done:" : "Waits for your next message:";
    redraw(this.waiting, [this.#id, busy, this.#model.queue.map((q) => [q.id, q.text, q.files?.length])], () => this.#model.queue.map((q, i) => this.#waitingItem(q, i, busy)));
    this.root.dataset.chatState = c?.state ?? "";
  }

  // #agent is that of the conversation, or the one that is chosen for the next.
  get #agent() {
    if (!this.#id) return this.agents.chosen;
    return (this.#model.conversation ?? this.#all.find((c) => c.id === this.#id))?.agent ?? "sandboxd";
  }

  // #named is the model for sandboxd's own agent: others have theirs in their settings.
  get #named() {
    return isOwn(this.#agent) ? this.model.value || "" : "";
  }

  get #empty() {
    return !this.shown.size && !this.#model.queue.length;
  }

  #footer(c, busy) {
    if (!this.#begun || (this.#id && !c)) return [h("div", { class: "chat-welcome", role: "status" }, "Loading…")];
    if (this.#empty) return [this.#welcome()];
    if (busy && (this.#lost || c.state === "working")) return [h("p", { class: "chat-working", role: "status" }, icon("state-busy"), this.#lost ? "Reconnecting…" : "Working…")];
    if (c?.state === "failed") {
      return [h("div", { class: "chat-failed", role: "alert" }, icon("warn"), h("p", {}, c.problem || "The turn failed."), h("button", { type: "button", class: "button", click: () => this.#do(() => this.api.resume(this.#id)) }, "Resume"))];
    }
    return [];
  }

  #welcome() {
    const agents = !this.#id && this.agents.element; // those of a conversation do not change
    if (this.names.length || (this.#id && !isOwn(this.#agent))) return h("div", { class: "chat-welcome" }, h("p", {}, "Tell the agent what to do in this sandbox. It can run commands, read and change files, and ask you."), agents);
    return h("div", { class: "chat-welcome" }, h("h2", {}, "No model yet"),
      h("p", {}, "Add a provider: paste an API key, enter the address of a model server, or use a model in one of your sandboxes. It takes a minute."),
      h("a", { class: "button primary", href: "/settings/models" }, "Add a provider"),
      h("p", { class: "quiet" }, "Added already? The chat offers the models that a provider lists: check it under Models."),
      h("p", { class: "quiet" }, "Or see how the chat works, with a demonstration that follows a script."),
      h("button", { type: "button", class: "button", click: () => this.#send({ text: "Show me what you can do." }, "demonstration") }, "Start the demonstration"), agents);
  }

  #waitingItem(q, i, busy) {
    const ids = this.#model.queue.map((o) => o.id);
    const order = (next) => this.#do(() => this.api.arrange(this.#id, next));
    const text = q.text || (q.files ?? []).map((f) => f.name).join(", ");
    const act = (name, title, press) => button(name, title, press, { "aria-label": `${title}: ${text.slice(0, 40)}`, "data-key": `${name} ${q.id}` });
    return h("li", {}, h("span", { class: "clip" }, text),
      i > 0 && act("up", "Earlier", () => order([...ids.slice(0, i - 1), q.id, ids[i - 1], ...ids.slice(i + 1)])),
      act("play", busy ? "Send now: the agent stops what it does" : "Send now", () => this.#do(() => this.api.now(this.#id, q.id))),
      act("close", "Delete", () => order(ids.filter((id) => id !== q.id))));
  }

  // #send sends a message. One whose answer was lost has the same name when it is sent again: it is the same message.
  async #send(message, model = "") {
    const sent = await this.#do(async () => {
      if (!this.#begun) await this.#beginning;
      const id = this.#id || (await this.#create(model));
      const key = JSON.stringify([id, message]);
      if (this.#unsent.key !== key) this.#unsent = { key, id: newID() };
      await this.api.send(id, { id: this.#unsent.id, ...message });
      this.#unsent = { key: "", id: "" };
      return true;
    });
    if (sent) this.#toEnd();
    return Boolean(sent);
  }

  async #create(model) {
    const { id } = await this.api.create({ agent: model ? "sandboxd" : this.agents.chosen, model: model || this.#named, mode: this.mode.value });
    this.open(id);
    return id;
  }

  async #set(fields) {
    if (!this.#id) Object.assign(this.#wanted, fields);
    else if (!(await this.#do(() => this.api.change(this.#id, fields)))) this.#frame(); // what is shown is what it is
  }

  async #rename() {
    const title = this.#id && prompt("Title of the conversation", this.#model.conversation.title);
    if (title) await this.#set({ title });
  }

  async #share() {
    if (!this.#id) return toast("Send a message first.");
    const { share } = await import("./sharing.js");
    return share(this.api, this.#id, (err) => toast(err.message, { bad: true }));
  }

  // #try sends what is written to agents in clones of the sandbox, and leads to the page that shows them.
  async #try() {
    const text = this.composer.text.value.trim();
    if (!text) return toast("Write a message first.");
    const { tryIt } = await import("./tries.js");
    const page = await this.#do(() => tryIt(this.api, { text, agent: this.#agent, model: this.#named, mode: this.mode.value }));
    if (page) location.assign(page);
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
    const { state } = this.#model.conversation ?? {};
    if (state === was) return;
    const words = { asking: "The agent asks you something", failed: "The agent could not continue", idle: "The agent is done" }[state];
    if (!words || was === undefined) return;
    announce(words);
  }
}
