// The page's one connection for everything the server pushes (web/live_connection.go): parts of the page, changed folders,
// logs. Each topic is a channel.
import { pageSignal } from "./page_lifecycle.js";
import { ReconnectingSocket, refusal, socketURL } from "./reconnect.js";

const patience = 5000; // ms for a terminal whose code does not come

// present leaves out parts whose place is not shown: a pane that is kept while its sandbox wakes has no panel, and a workspace has
// no number of alerts.
export function present(html, shown) {
  return html.replace(/<hx-partial hx-target="#(work-[a-z]+|alert-count)"[^]*?<\/hx-partial>/g, (part, id) => (shown(id) ? part : ""));
}

// Channel follows one topic. Its events: "opened", also after each reconnect; the topic's own events, with data; "lost" when
// the connection is lost; "ended" when no more follows, whose data is the problem as JSON, or "".
class Channel extends EventTarget {
  #live;

  constructor(live, id, topic, seen) {
    super();
    this.#live = live;
    this.id = id;
    this.topic = topic;
    this.seen = seen;
  }

  close() {
    this.#live.close(this);
  }

  emit(kind, data = "") {
    this.dispatchEvent(Object.assign(new Event(kind), { data }));
  }
}

// Live has the events "connected" (also when the server answers again), "silent" (it does not answer), "lost" (it reconnects by itself) and, when the server refuses the connection for that,
// "signed-out" and "other-account" (the page was rendered for another user than the one signed in).
export class Live extends ReconnectingSocket {
  #channels = new Map(); // id → Channel
  #last = 0;
  #waits = false; // for the page's terminal

  // open follows a topic. seen is a query that says what the page already shows of it; it is valid until the first reply.
  open(topic, seen = "") {
    const channel = new Channel(this, ++this.#last, topic, seen);
    this.#channels.set(channel.id, channel);
    if (this.#begin(channel)) queueMicrotask(() => channel.emit("opened")); // the caller listens once it has the channel
    else if (!this.wanted) this.#startLater();
    return channel;
  }

  // #startLater lets a page's terminal connect first: a browser opens one WebSocket to a host at a time, and a person waits for
  // the terminal.
  async #startLater() {
    if (this.#waits) return;
    this.#waits = true;
    if (globalThis.document?.querySelector?.("sandbox-terminals:not(:defined)")) {
      await Promise.race([customElements.whenDefined("sandbox-terminals"), new Promise((done) => setTimeout(done, patience))]);
    }
    this.#waits = false;
    this.start();
  }

  close(channel) {
    if (this.#channels.delete(channel.id)) this.send(JSON.stringify({ id: channel.id }));
  }

  #begin(channel) {
    const { id, topic, seen } = channel;
    if (!this.send(JSON.stringify({ id, topic: seen ? `${topic}${topic.includes("?") ? "&" : "?"}${seen}` : topic }))) return false;
    channel.seen = "";
    return true;
  }

  makeSocket() {
    return new WebSocket(address());
  }

  ping() {
    this.send(JSON.stringify({ id: 0 }));
  }

  answers(yes) {
    this.dispatchEvent(new Event(yes ? "connected" : "silent"));
  }

  opened() {
    this.dispatchEvent(new Event("connected"));
    if (globalThis.document?.hidden) this.tellHidden();
    for (const channel of [...this.#channels.values()]) if (this.#begin(channel)) channel.emit("opened");
  }

  // tellHidden says whether the page is hidden, so that figures that nobody sees are not sent.
  tellHidden() {
    this.send(JSON.stringify({ hidden: document.hidden }));
  }

  received(text) {
    const { id, kind, data } = JSON.parse(text);
    const channel = this.#channels.get(id);
    if (!channel) return; // closed meanwhile
    if (kind === "ended") this.#channels.delete(id);
    channel.emit(kind, data);
  }

  async lost({ code }, opened) {
    this.retry();
    this.dispatchEvent(new Event("lost"));
    this.left();
    const status = code === 1008 ? 401 : opened ? 0 : (await refusal(address()))?.status;
    const why = { 401: "signed-out", 409: "other-account" }[status];
    if (why && !this.busy && !pageSignal().aborted) this.dispatchEvent(new Event(why));
  }

  left() {
    for (const channel of [...this.#channels.values()]) channel.emit("lost");
  }
}

const address = () => socketURL(`/live?person=${encodeURIComponent(document.body.dataset.person ?? "")}`);

export const live = new Live();

globalThis.document?.addEventListener?.("visibilitychange", () => live.tellHidden());
