// Reconnecting: backoff, and a WebSocket that reconnects by itself.
import { onResume, pageSignal } from "./page_lifecycle.js";

const steady = 5000; // ms after which a connection counts as stable
const pingEvery = 5000; // ms
const unanswered = 2500; // ms without an answer to a ping after which people are told
const silence = 9000; // ms without an answer to a ping after which a connection counts as lost: two pings, less what timers are late
const sleep = 90_000; // ms without a message after which the computer was asleep; hidden pages ping once a minute

const sockets = new Set();
let watching = 0;
let pingedAt = 0;

// watch pings, and drops what did not answer the last ping: all at once, since they share the line.
function watch() {
  const silent = [...sockets].filter((s) => s.silentFor);
  if (silent.some((s) => s.silentFor >= silence)) for (const s of silent) s.drop();
  else for (const s of silent) if (s.silentFor >= unanswered) s.tell(false);
  if (Math.abs(Date.now() - pingedAt) >= pingEvery) pingAll(); // the clock may be set back
}

function pingAll() {
  pingedAt = Date.now();
  for (const s of sockets) if (!s.silentFor) s.ask();
}

// delayAfter returns how long to wait before the next attempt, in ms, after that many failures. chance is from 0 to 1.
export function delayAfter(failures, { first = 250, longest = 10_000, chance = Math.random() } = {}) {
  const full = Math.min(longest, first * 2 ** Math.min(failures, 10));
  return full / 2 + (full / 2) * chance;
}

// socketURL returns the WebSocket address of a path on this host.
export function socketURL(path) {
  return new URL(path, location.href.replace(/^http/, "ws"));
}

// refusal returns the response to a WebSocket's address without an upgrade, or null when the server cannot be reached.
// Browsers do not tell scripts why a WebSocket was refused.
export function refusal(url, headers = {}) {
  const address = String(url).replace(/^ws/, "http");
  return fetch(address, { headers: { Accept: "application/problem+json", ...headers }, redirect: "manual", signal: AbortSignal.any([pageSignal(), AbortSignal.timeout(silence)]) }).catch(() => null);
}

// ReconnectingSocket holds one WebSocket. Once started it is reopened until stop() or dispose(): with backoff, and at once
// when the browser is online again or the page is visible. It is closed while the page is in the back/forward cache, because
// browsers keep such pages with everything they have open.
//
// It pings, since a line can be dead without being closed.
//
// Subclasses have makeSocket(how), which returns a new WebSocket; ping(), which asks for any message; opened(); received(data);
// answers(yes), when pings get no answer, and when one arrives again; left(), for a page that is left while connected; and
// lost(event, opened), which calls retry() or stop(), maybe later. opened says whether there was a connection.
export class ReconnectingSocket extends EventTarget {
  #socket = null;
  #openedAt = 0;
  #timer = 0; // of this attempt, or the next
  #pingAt = 0;
  #heardAt = 0;
  #answers = true;
  #failures = 0;
  #wanted = false; // open, or to be reopened
  #disposed = new AbortController();

  constructor() {
    super();
    const { signal } = this.#disposed;
    onResume(() => this.hurry(), { signal });
    globalThis.addEventListener?.("pagehide", () => this.#close() && this.left(), { signal });
    globalThis.document?.addEventListener("visibilitychange", () => !document.hidden && this.hurry(), { signal });
  }

  get wanted() {
    return this.#wanted;
  }

  // busy says whether there is a socket already, or can be none any more.
  get busy() {
    return Boolean(this.#socket) || this.#disposed.signal.aborted;
  }

  start(how) {
    if (this.busy) return;
    this.#wanted = true;
    clearTimeout(this.#timer);
    if (pageSignal().aborted) return;
    const socket = this.makeSocket(how);
    this.#socket = socket;
    this.#openedAt = 0;
    this.#timer = setTimeout(() => socket.readyState === 0 && socket.close(), this.openLimit(how));
    socket.onopen = () => {
      this.#openedAt = this.#pingAt = this.#heardAt = Date.now();
      this.#answers = true;
      if (!sockets.size) pingedAt = this.#openedAt;
      sockets.add(this);
      watching ||= setInterval(watch, 1000);
      this.opened();
    };
    socket.onmessage = (event) => {
      this.#heardAt = Date.now();
      this.tell(true);
      this.received(event.data);
    };
    socket.onclose = (event) => this.#socket === socket && this.drop(event);
  }

  // openLimit returns how long an attempt may take, in ms.
  openLimit() {
    return 15_000;
  }

  // silentFor returns for how long the last ping has had no answer, in ms.
  get silentFor() {
    return this.#heardAt < this.#pingAt ? Date.now() - this.#pingAt : 0;
  }

  ask() {
    this.#pingAt = Date.now();
    this.ping();
  }

  tell(answers) {
    if (answers === this.#answers) return;
    this.#answers = answers;
    this.answers(answers);
  }

  // expect is called when an answer should arrive soon, to tell early that there is none.
  expect() {
    if (Date.now() - Math.max(pingedAt, this.#heardAt) > 1000) pingAll();
  }

  // send reports whether there is a connection; without one the message is dropped.
  send(message) {
    if (this.#socket?.readyState !== 1) return false;
    this.#socket.send(message);
    return true;
  }

  // drop treats the connection as lost, without waiting for the browser to notice.
  drop(event = { code: 0, reason: "" }) {
    if (!this.#close()) return;
    if (this.#openedAt && Date.now() - this.#openedAt > steady) this.#failures = 0;
    this.lost(event, this.#openedAt > 0);
  }

  retry() {
    if (!this.busy) this.#timer = setTimeout(() => this.start(), delayAfter(this.#failures++));
  }

  stop() {
    this.#wanted = false;
    this.#failures = 0;
  }

  // hurry reconnects without waiting for the next attempt.
  hurry() {
    if (this.#socket?.readyState === 1 && Date.now() - this.#heardAt > sleep) this.drop();
    if (this.#wanted) this.start();
  }

  dispose() {
    this.#disposed.abort();
    this.#close();
  }

  #close() {
    clearTimeout(this.#timer);
    sockets.delete(this);
    if (!sockets.size) watching = clearInterval(watching);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close(1000);
    return Boolean(socket);
  }
}
