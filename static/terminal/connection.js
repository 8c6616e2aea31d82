// Connection is a websocket that comes back by itself, unless it was told that there is nothing to come back to. What it
// does by itself never wakes a sandbox: a page that somebody has forgotten must not.
//
// States: "connecting" (the first time), "connected", "reconnecting" (by itself, soon), "asleep" (the sandbox rests: wake()
// wakes it; reason says why it could not be woken, if that was tried), "waking", and "closed" (reason says why; wake()
// tries again).
import { delayAfter } from "../js/backoff.js";
import { onReturn } from "../js/page_life.js";

const steady = 5_000; // ms after which a connection counts as good
const openLimit = 15_000; // ms
const wakeLimit = 70_000; // ms; sandboxd gives up after 60 s, and says so

// Close codes at which trying again by itself makes no sense (internal/terminal/ending.go has them all).
const asleep = 4003;
const final = new Set([1000, 1008, 1011, 4001, 4002, asleep, 4004]);

// Codes of problems that say that the sandbox rests.
const resting = new Set(["asleep", "frozen"]);

// isFinal says whether a websocket that was closed with code stays closed.
export function isFinal(code) {
  return final.has(code);
}

// addressOf is where to connect: the mere address wakes the sandbox when it is asleep.
export function addressOf(url, wake) {
  const address = new URL(url);
  if (!wake) address.searchParams.set("wake", "0");
  return address.href;
}

export class Connection {
  #socket = null;
  #timer = 0;
  #failures = 0;
  #state = "";
  #away = new AbortController();

  // on: {open(), message(ArrayBuffer), state(state, reason), rest(how) where a refusal has said how the sandbox rests}
  constructor(url, on) {
    this.url = url;
    this.on = on;
    const { signal } = this.#away;
    onReturn(() => this.#hurry(), { signal, page: window });
    window.addEventListener("pagehide", () => this.#leave(), { signal });
    document.addEventListener("visibilitychange", () => !document.hidden && this.#hurry(), { signal });
  }

  get state() {
    return this.#state;
  }

  // connect connects, unless the sandbox is asleep.
  connect() {
    this.#open(false);
  }

  // wake connects because a person wants it to: the sandbox is woken when it is asleep.
  wake() {
    this.#open(true);
  }

  #open(wake) {
    if (this.#away.signal.aborted || this.#socket) return;
    clearTimeout(this.#timer);
    this.#set(this.#opening(wake), "");
    const socket = new WebSocket(addressOf(this.url, wake), ["tty"]);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    const attempt = { wake, opened: 0, heard: false };
    const limit = setTimeout(() => socket.close(), wake ? wakeLimit : openLimit);
    socket.onopen = () => {
      clearTimeout(limit);
      attempt.opened = Date.now();
      this.#set("connected", "");
      this.on.open();
    };
    socket.onmessage = (event) => {
      attempt.heard = true;
      if (event.data instanceof ArrayBuffer) this.on.message(event.data);
    };
    socket.onclose = (event) => {
      clearTimeout(limit);
      if (this.#socket !== socket) return;
      this.#socket = null;
      this.#lost(event, attempt);
    };
  }

  #opening(wake) {
    if (wake && this.#state === "asleep") return "waking";
    return this.#state === "" ? "connecting" : "reconnecting";
  }

  // send drops what cannot be sent now; false then.
  send(message) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(message);
    return true;
  }

  dispose() {
    this.#away.abort();
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close(1000);
  }

  async #lost(event, attempt) {
    if (attempt.opened && Date.now() - attempt.opened > steady) this.#failures = 0;
    if (event.code === asleep) return this.#stay("asleep", attempt.wake && !attempt.heard ? event.reason : "");
    if (isFinal(event.code)) return this.#stay("closed", event.reason || "The connection was closed.");
    this.#set("reconnecting", event.reason);
    const refusal = attempt.opened ? null : await this.#refusal();
    if (this.#away.signal.aborted || this.#socket) return;
    if (refusal) return this.#stay(...refusal);
    this.#timer = setTimeout(() => this.connect(), delayAfter(this.#failures++));
  }

  // stay: nothing more happens by itself.
  #stay(state, reason) {
    this.#failures = 0;
    this.#set(state, reason);
  }

  // A script is not told why a websocket was refused; the same address without an upgrade says so when it is final, as
  // [state, reason]. Asking is no use of the sandbox: where it is the sandbox's own host that answers, it only observes.
  async #refusal() {
    const url = new URL(this.url);
    url.protocol = url.protocol.replace("ws", "http");
    const headers = { Accept: "application/problem+json", "X-Sandboxd-Observe": "1" };
    try {
      const answer = await fetch(url, { headers, redirect: "manual", signal: this.#away.signal });
      if (answer.type === "opaqueredirect" || answer.status === 401) return ["closed", "You are signed out. Reload the page to sign in."];
      const problem = answer.ok ? null : await answer.json().catch(() => null);
      if (resting.has(problem?.code)) {
        this.on.rest?.(problem.code);
        return ["asleep", ""];
      }
      if (![403, 404, 409, 410].includes(answer.status)) return null;
      return ["closed", problem?.detail || problem?.title || "The terminal cannot be opened."];
    } catch {
      return null; // sandboxd is away: it will be back
    }
  }

  // leave ends the connection with the page, which the browser may keep; it comes back with it.
  #leave() {
    clearTimeout(this.#timer);
    const socket = this.#socket;
    this.#socket = null;
    socket?.close(1000);
    if (socket) this.#set("reconnecting", "");
  }

  // hurry tries again at once when there is reason to think that it works now.
  #hurry() {
    if (this.#state === "reconnecting" && !this.#socket) this.connect();
  }

  #set(state, reason) {
    if (state === this.#state && state !== "closed" && state !== "asleep") return;
    this.#state = state;
    this.on.state(state, reason);
  }
}
