// The page's one connection for everything that sandboxd tells without being asked (web/live_connection.go): parts of the
// page, changed folders, a log. Each is a channel. The connection comes back by itself. While the page is away it is
// closed: a browser keeps pages that were left, with all that they have open.
import { delayAfter } from "./backoff.js";
import { whileHere } from "./page_life.js";

const silence = 40_000; // ms; sandboxd says that it is there every 15 s
const lookEvery = 10_000; // ms between looks at whether it has
const steady = 5000; // ms after which a connection counts as good

// Channel follows one topic. Its events: "opened" each time that it begins, also anew; what the topic tells, with data;
// "lost" when the connection is; "ended" when no more will come, whose data is the problem as JSON, or "".
export class Channel extends EventTarget {
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

  tell(kind, data = "") {
    this.dispatchEvent(Object.assign(new Event(kind), { data }));
  }
}

// Live has the events "connected", "lost" (it tries again by itself) and, where sandboxd refuses a connection for that,
// "signed-out" and "other-account" (the page was drawn for another user than the one who is signed in).
export class Live extends EventTarget {
  #channels = new Map(); // id → Channel
  #last = 0;
  #socket = null;
  #failures = 0;
  #timer = 0; // of the next attempt
  #heard = 0; // when sandboxd last said anything
  #here = true;

  // connect() gives a WebSocket. refused() resolves to why sandboxd refuses one, as the event above, or to "".
  constructor({ connect, refused, page = globalThis }) {
    super();
    this.connect = connect;
    this.refused = refused;
    page.addEventListener?.("pagehide", () => this.#leave());
    page.addEventListener?.("pageshow", (event) => event.persisted && this.#return());
    page.addEventListener?.("online", () => this.#hurry());
    page.document?.addEventListener("visibilitychange", () => !page.document.hidden && this.#hurry());
  }

  // open follows a topic. seen is a query that says what the page shows of it, true until something has been told.
  open(topic, seen = "") {
    const channel = new Channel(this, ++this.#last, topic, seen);
    this.#channels.set(channel.id, channel);
    if (this.#socket?.readyState === 1) this.#begin(channel);
    else if (!this.#socket && !this.#timer) this.#open();
    return channel;
  }

  close(channel) {
    if (this.#channels.delete(channel.id)) this.#send({ id: channel.id });
  }

  #send(ask) {
    if (this.#socket?.readyState === 1) this.#socket.send(JSON.stringify(ask));
  }

  #begin(channel) {
    const { id, topic, seen } = channel;
    this.#send({ id, topic: seen ? `${topic}${topic.includes("?") ? "&" : "?"}${seen}` : topic });
    channel.seen = "";
    channel.tell("opened");
  }

  #open() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (!this.#here || this.#socket) return;
    const socket = this.connect();
    this.#socket = socket;
    this.#heard = Date.now();
    const look = setInterval(() => this.#look(), lookEvery);
    let opened = 0;
    socket.onopen = () => {
      this.#heard = opened = Date.now();
      this.dispatchEvent(new Event("connected"));
      for (const channel of [...this.#channels.values()]) this.#begin(channel);
    };
    socket.onmessage = (event) => this.#take(event.data);
    socket.onclose = (event) => {
      clearInterval(look);
      if (this.#socket === socket) this.#lost(event.code, opened);
    };
  }

  #take(text) {
    this.#heard = Date.now();
    const { id, kind, data } = JSON.parse(text);
    const channel = this.#channels.get(id);
    if (!channel) return; // it was closed meanwhile
    if (kind === "ended") this.#channels.delete(id);
    channel.tell(kind, data);
  }

  async #lost(code, opened) {
    this.#drop();
    if (opened && Date.now() - opened > steady) this.#failures = 0;
    this.#timer = setTimeout(() => this.#open(), delayAfter(this.#failures++));
    this.dispatchEvent(new Event("lost"));
    for (const channel of [...this.#channels.values()]) channel.tell("lost");
    const why = code === 1008 ? "signed-out" : opened ? "" : await this.refused();
    if (why && !this.#socket && this.#here) this.dispatchEvent(new Event(why));
  }

  // drop lets go of the connection, however it is.
  #drop() {
    const socket = this.#socket;
    this.#socket = null;
    socket?.close();
  }

  // look takes a long silence for a lost connection: a computer that slept finds out by itself only much later.
  #look() {
    if (this.#socket && Date.now() - this.#heard > silence) this.#lost(0, 1);
  }

  // hurry tries again at once when there is reason to think that it works now.
  #hurry() {
    this.#look();
    if (this.#timer) this.#open();
  }

  #leave() {
    this.#here = false;
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#drop();
    for (const channel of [...this.#channels.values()]) channel.tell("lost");
  }

  #return() {
    this.#here = true;
    this.#failures = 0;
    if (this.#channels.size) this.#open();
  }
}

const address = () => new URL(`/live?person=${encodeURIComponent(document.body.dataset.person ?? "")}`, location.href);

export const live = new Live({
  connect() {
    const url = address();
    url.protocol = url.protocol.replace("http", "ws");
    return new WebSocket(url);
  },
  // A script is not told why a websocket was refused; the same address without one says so.
  async refused() {
    const asked = { headers: { Accept: "application/problem+json" }, redirect: "manual", signal: whileHere() };
    const { status } = await fetch(address(), asked).catch(() => ({}));
    return { 401: "signed-out", 409: "other-account" }[status] ?? "";
  },
});
