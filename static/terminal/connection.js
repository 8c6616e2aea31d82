// Connection is a terminal's WebSocket. It reconnects by itself, except after a final close code, but wakes the sandbox only
// on request: a forgotten page must not keep a sandbox awake.
//
// States: "connecting" (the first time), "connected", "silent" (connected, but nothing answers), "reconnecting", "asleep" (wake() wakes the sandbox; reason says why
// the last attempt to wake it failed), "waking", "closed" (reason says why; wake() tries again), and "deleted"
// (the sandbox is gone).
import { ReconnectingSocket, refusal } from "../js/reconnect.js";
import { ping } from "./protocol.js";

const wakeTimeout = 70_000; // ms; sandboxd gives up after 60 s, and says so

// Close codes after which reconnecting makes no sense (internal/terminal/ending.go lists all).
const asleep = 4003;
const deleted = 4004;
const final = new Set([1000, 1008, 1011, 4001, 4002, asleep, deleted]);

const resting = new Set(["asleep", "frozen"]); // codes of problems

export function isFinal(code) {
  return final.has(code);
}

// addressOf returns the address to connect to. Without ?wake=0 it wakes the sandbox.
export function addressOf(url, wake) {
  const address = new URL(url);
  if (!wake) address.searchParams.set("wake", "0");
  return address.href;
}

export class Connection extends ReconnectingSocket {
  #state = "";
  #woke = false; // the last attempt was to wake the sandbox
  #heard = false; // it received something
  #typed = false; // since it received something

  // on: {open(), message(ArrayBuffer), state(state, reason), doubt(text), called when what was typed is lost, or may be; rest(how), called
  // when a refusal says how the sandbox rests}
  constructor(url, on) {
    super();
    this.url = url;
    this.on = on;
  }

  get state() {
    return this.#state;
  }

  // connect connects, unless the sandbox is asleep.
  connect() {
    this.start(false);
  }

  // wake connects, and wakes the sandbox if it is asleep. Call it only when the user asks for it.
  wake() {
    this.start(true);
  }

  makeSocket(wake = false) {
    this.#set(wake && this.#state === "asleep" ? "waking" : this.#state === "" ? "connecting" : "reconnecting");
    const socket = new WebSocket(addressOf(this.url, wake), ["tty"]);
    socket.binaryType = "arraybuffer";
    this.#woke = wake;
    this.#heard = false;
    return socket;
  }

  openLimit(wake) {
    return wake ? wakeTimeout : super.openLimit();
  }

  ping() {
    this.send(ping());
  }

  // type sends what a person typed.
  type(messages) {
    const sent = messages.every((message) => this.send(message));
    if (sent) this.expect();
    else if (this.#state === "reconnecting") this.on.doubt?.("Not connected: what you type is not sent.");
    this.#typed ||= sent;
  }

  answers(yes) {
    this.#set(yes ? "connected" : "silent");
  }

  opened() {
    this.#typed = false;
    this.#set("connected");
    this.on.open();
  }

  received(data) {
    this.#heard = true;
    this.#typed = false;
    if (data instanceof ArrayBuffer) this.on.message(data);
  }

  async lost({ code, reason }, opened) {
    if (code === asleep) return this.#stop("asleep", this.#woke && !this.#heard ? reason : "");
    if (code === deleted) return this.#stop("deleted");
    if (isFinal(code)) return this.#stop("closed", reason || "The connection was closed.");
    if (this.#typed) this.on.doubt?.("The connection broke. What you typed last may not have arrived.");
    this.#typed = false;
    this.#set("reconnecting", reason);
    const final = opened ? null : await this.#refusal();
    if (this.busy) return;
    if (final) this.#stop(...final);
    else this.retry();
  }

  left() {
    this.#set("reconnecting");
  }

  #stop(state, reason = "") {
    this.stop();
    this.#set(state, reason);
  }

  // #refusal returns [state, reason] when the refusal is final. The request does not count as use of the sandbox, also when
  // the sandbox's own host answers it.
  async #refusal() {
    const response = await refusal(this.url, { "X-Sandboxd-Observe": "1" });
    if (!response) return null;
    if (response.type === "opaqueredirect" || response.status === 401) return ["closed", "You are signed out. Reload the page to sign in."];
    const problem = response.ok ? null : await response.json().catch(() => null);
    if (resting.has(problem?.code)) {
      this.on.rest?.(problem.code);
      return ["asleep", ""];
    }
    if (response.status === 410) return ["deleted", ""];
    if (![403, 404, 409].includes(response.status)) return null;
    return ["closed", problem?.detail || problem?.title || "The terminal cannot be opened."];
  }

  #set(state, reason = "") {
    if (state === this.#state && state !== "closed" && state !== "asleep") return;
    this.#state = state;
    this.on.state(state, reason);
  }
}
