// Connection is a websocket that comes back by itself, unless it was told that there is nothing to come back to.
//
// States: "connecting" (the first time), "connected", "reconnecting" (by itself, soon) and "closed" (reason says why;
// connect() tries again).
const firstDelay = 250; // ms
const longestDelay = 10_000; // ms
const steady = 5_000; // ms after which a connection counts as good
const openLimit = 15_000; // ms; waking a sandbox takes a while

// Close codes at which trying again by itself makes no sense (internal/terminal/ending.go has them all).
const final = new Set([1000, 1008, 1011, 4001, 4002, 4003, 4004]);

// isFinal says whether a websocket that was closed with code stays closed.
export function isFinal(code) {
  return final.has(code);
}

// delayAfter is how long to wait before the next attempt, after so many that failed. chance is from 0 to 1.
export function delayAfter(failures, chance) {
  const whole = Math.min(longestDelay, firstDelay * 2 ** Math.min(failures, 10));
  return whole / 2 + (whole / 2) * chance;
}

export class Connection {
  #socket = null;
  #timer = 0;
  #failures = 0;
  #opened = 0;
  #state = "";
  #away = new AbortController();

  // on: {open(), message(ArrayBuffer), state(state, reason)}
  constructor(url, on) {
    this.url = url;
    this.on = on;
    const { signal } = this.#away;
    window.addEventListener("online", () => this.#hurry(), { signal });
    document.addEventListener("visibilitychange", () => !document.hidden && this.#hurry(), { signal });
  }

  get state() {
    return this.#state;
  }

  connect() {
    if (this.#away.signal.aborted || this.#socket) return;
    clearTimeout(this.#timer);
    this.#set(this.#state === "" ? "connecting" : "reconnecting", "");
    const socket = new WebSocket(this.url, ["tty"]);
    socket.binaryType = "arraybuffer";
    this.#socket = socket;
    let opened = false;
    const limit = setTimeout(() => socket.close(), openLimit);
    socket.onopen = () => {
      clearTimeout(limit);
      opened = true;
      this.#opened = Date.now();
      this.#set("connected", "");
      this.on.open();
    };
    socket.onmessage = (event) => event.data instanceof ArrayBuffer && this.on.message(event.data);
    socket.onclose = (event) => {
      clearTimeout(limit);
      if (this.#socket !== socket) return;
      this.#socket = null;
      this.#lost(event, opened);
    };
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

  async #lost(event, opened) {
    if (opened && Date.now() - this.#opened > steady) this.#failures = 0;
    if (isFinal(event.code)) return this.#close(event.reason || "The connection was closed.");
    this.#set("reconnecting", event.reason);
    const refusal = opened ? "" : await this.#refusal();
    if (this.#away.signal.aborted || this.#socket) return;
    if (refusal) return this.#close(refusal);
    this.#timer = setTimeout(() => this.connect(), delayAfter(this.#failures++, Math.random()));
  }

  #close(reason) {
    this.#failures = 0;
    this.#set("closed", reason);
  }

  // A script is not told why a websocket was refused; the same address without an upgrade says so when it is final.
  async #refusal() {
    const url = new URL(this.url);
    url.protocol = url.protocol.replace("ws", "http");
    try {
      const answer = await fetch(url, { headers: { Accept: "application/problem+json" }, redirect: "manual", signal: this.#away.signal });
      if (answer.type === "opaqueredirect" || answer.status === 401) return "You are signed out. Reload the page to sign in.";
      if (![403, 404, 409, 410].includes(answer.status)) return "";
      const problem = await answer.json().catch(() => null);
      return problem?.detail || problem?.title || "The terminal cannot be opened.";
    } catch {
      return ""; // sandboxd is away: it will be back
    }
  }

  // hurry tries again at once when there is reason to think that it works now.
  #hurry() {
    if (this.#state === "reconnecting" && !this.#socket) this.connect();
  }

  #set(state, reason) {
    if (state === this.#state && state !== "closed") return;
    this.#state = state;
    this.on.state(state, reason);
  }
}
