// A terminal in a page: xterm.js in front of a websocket that speaks ttyd's protocol. mount makes one; there may be
// any number in a page. The shell, and its screen, live in the sandbox: what is mounted again shows the same.
import { ClipboardAddon } from "@xterm/addon-clipboard";
import { FitAddon } from "@xterm/addon-fit";
import { Unicode11Addon } from "@xterm/addon-unicode11";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { WebglAddon } from "@xterm/addon-webgl";
import { Terminal } from "@xterm/xterm";
import { Attention } from "./attention.js";
import { copy, writeOnly } from "./clipboard.js";
import { Connection } from "./connection.js";
import { Feed } from "./feed.js";
import { follow, followHidden } from "./links.js";
import { readLook, watchLook } from "./look.js";
import { Notice, shownAs, waits } from "./notice.js";
import * as protocol from "./protocol.js";
import "@xterm/xterm/css/xterm.css";
import "./terminal.css";

const scrollback = 10_000; // lines; with tmux the scrollback is tmux's
const resizePause = 60; // ms without a further change of size
const window_ = 2 * 1024 * 1024; // bytes of output that may be under way to the screen

/**
 * mount fills element with a terminal.
 *
 * options: url (ws or wss, of the terminal's websocket), tab (its name, for the label), label, screenReader (boolean),
 * wake (boolean: a person asked for this terminal, so that it may wake the sandbox), onState(state, reason) with one of
 * Connection's states, or "frozen" for "asleep" where the sandbox is, onTitle(title), which comes from the sandbox as it is. element also gets the events
 * "terminal-state" and "terminal-title" with these in detail.
 *
 * The handle: focus(), fit(), reconnect() (a person wants it, so it wakes the sandbox), rejoin() (somebody else has woken
 * it), rest(how) (the sandbox is "frozen", "asleep" or, for all else, neither), copy(), paste(text), setScreenReader(on), state, text() (the screen's lines, for tests), dispose().
 */
export function mount(element, options) {
  return new MountedTerminal(element, options);
}

class MountedTerminal {
  #away = new AbortController();
  #resizeTimer = 0;
  #fresh = false; // the next output is the first of its connection
  #webgl = null;
  #rest = ""; // how the sandbox rests, as far as somebody has said so
  #reason = "";
  #taken = false; // xterm.js has made input of the last key that went down

  constructor(element, options) {
    this.options = options;
    this.root = document.createElement("div");
    this.root.className = "terminal-root";
    element.replaceChildren(this.root);
    this.element = element;
    this.#makeScreen();
    this.notice = new Notice(this.root, () => this.reconnect());
    this.feed = new Feed(
      (bytes, done) => this.screen.write(bytes, done),
      (bytes) => this.connection.send(protocol.ack(bytes)),
    );
    this.connection = new Connection(options.url, {
      open: () => this.#opened(),
      message: (buffer) => this.#received(buffer),
      state: (state, reason) => this.#changed(state, reason),
      rest: (how) => this.rest(how),
    });
    this.#watch();
    this.fit();
    if (options.wake) this.connection.wake();
    else this.connection.connect();
  }

  get state() {
    return this.connection.state;
  }

  focus() {
    this.screen.focus();
  }

  // fit gives the terminal the size of its element, if that can be seen.
  fit() {
    if (!this.#seen()) return;
    this.#speedUp();
    this.fitting.fit();
  }

  reconnect() {
    this.connection.wake();
    this.focus();
  }

  rejoin() {
    if (this.state === "asleep") this.connection.connect();
  }

  rest(how) {
    const before = shownAs(this.state, this.#rest);
    this.#rest = how;
    if (shownAs(this.state, how) !== before) this.#changed(this.state, this.#reason);
  }

  copy() {
    return copy(this.screen.getSelection());
  }

  paste(text) {
    this.screen.paste(text);
  }

  setScreenReader(on) {
    this.screen.options.screenReaderMode = on;
  }

  // text gives the lines of the screen and what was scrolled out of it.
  text() {
    const buffer = this.screen.buffer.active;
    return Array.from({ length: buffer.length }, (_, i) => buffer.getLine(i)?.translateToString(true) ?? "");
  }

  dispose() {
    if (this.#away.signal.aborted) return;
    this.#away.abort();
    clearTimeout(this.#resizeTimer);
    this.connection.dispose();
    this.notice.dispose();
    this.screen.dispose();
    this.root.remove();
  }

  #makeScreen() {
    this.screen = new Terminal({
      ...readLook(this.root),
      allowProposedApi: true, // unicode
      cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
      linkHandler: { activate: followHidden },
      macOptionClickForcesSelection: true,
      minimumContrastRatio: 4.5,
      rightClickSelectsWord: false,
      screenReaderMode: this.options.screenReader ?? false,
      scrollback,
    });
    this.fitting = new FitAddon();
    this.screen.loadAddon(this.fitting);
    this.screen.loadAddon(new Unicode11Addon());
    this.screen.unicode.activeVersion = "11";
    this.screen.loadAddon(new WebLinksAddon(follow));
    this.screen.loadAddon(new ClipboardAddon(undefined, writeOnly));
    this.screen.open(this.root);
    this.screen.textarea?.setAttribute("aria-label", this.options.label ?? `Terminal ${this.options.tab ?? ""}`.trim());
    this.screen.textarea?.addEventListener("keydown", (event) => { this.#taken = event.defaultPrevented; }, true);
    this.screen.attachCustomKeyEventHandler((event) => this.#key(event));
    this.screen.onData((data) => this.#type(data));
    this.screen.onBinary((data) => this.#type(protocol.bytesOf(data)));
    this.screen.onResize(({ cols, rows }) => this.connection?.send(protocol.resize(cols, rows)));
    this.screen.onTitleChange((title) => this.#tell("title", title, this.options.onTitle));
  }

  // speedUp draws with WebGL where that works. A lost context (there are only so many in a page) falls back for good.
  #speedUp() {
    if (this.#webgl !== null) return;
    try {
      this.#webgl = new WebglAddon();
      this.#webgl.onContextLoss(() => this.#webgl.dispose());
      this.screen.loadAddon(this.#webgl);
    } catch {
      this.#webgl = false;
    }
  }

  #watch() {
    const { signal } = this.#away;
    const sizes = new ResizeObserver(() => {
      clearTimeout(this.#resizeTimer);
      this.#resizeTimer = setTimeout(() => this.fit(), resizePause);
    });
    sizes.observe(this.root);
    signal.addEventListener("abort", () => sizes.disconnect());
    watchLook(() => {
      Object.assign(this.screen.options, readLook(this.root));
      this.fit();
    }, signal);
    document.fonts?.ready.then(() => !signal.aborted && this.fit());
    new Attention(document, () => this.#seen() && this.connection.send(protocol.watched()), signal);
    this.root.addEventListener("click", () => this.state === "asleep" && !this.screen.hasSelection() && this.reconnect(), { signal });
  }

  #seen() {
    return this.root.clientWidth > 0 && this.root.clientHeight > 0;
  }

  // key: what is ours is kept from the shell. Ctrl+Shift+V and the menu's paste reach xterm.js as paste events.
  #key(event) {
    if (event.type === "keypress") return !this.#taken; // programs that drive browsers send it all the same
    if (event.type !== "keydown") return true;
    if (waits(this.state) && event.key === "Enter") {
      event.preventDefault();
      this.reconnect();
      return false;
    }
    if (!event.ctrlKey || !event.shiftKey || event.altKey || event.metaKey) return true;
    if (event.code === "KeyC") {
      event.preventDefault();
      this.copy();
      return false;
    }
    return event.code !== "KeyV";
  }

  #type(data) {
    for (const message of protocol.input(data)) this.connection.send(message);
  }

  #opened() {
    this.#fresh = true;
    this.feed.restart();
    this.connection.send(protocol.hello(this.screen.cols, this.screen.rows, window_));
  }

  // received: every connection begins with the whole screen, so what is there is wiped just before.
  #received(buffer) {
    const bytes = protocol.output(buffer);
    if (!bytes) return;
    if (this.#fresh) {
      this.#fresh = false;
      this.screen.reset();
    }
    this.feed.push(bytes);
  }

  #changed(state, reason) {
    this.#reason = reason;
    const shown = shownAs(state, this.#rest);
    this.root.dataset.state = shown;
    this.notice.show(shown, reason);
    this.#tell("state", shown, (value) => this.options.onState?.(value, reason));
  }

  #tell(what, value, callback) {
    callback?.(value);
    this.element.dispatchEvent(new CustomEvent(`terminal-${what}`, { detail: value }));
  }
}
