// A terminal: xterm.js connected to a WebSocket that speaks ttyd's protocol. The shell and its screen live in the sandbox,
// so a terminal that is mounted again shows the same.
import { WebLinksAddon } from "@xterm/addon-web-links";
import { copy, readClipboard } from "../js/clipboard.js";
import { h, isMac } from "../js/dom.js";
import { ask } from "./ask.js";
import { Attention } from "./attention.js";
import { Chip } from "./chip.js";
import { ClipboardRequests } from "./clipboard_requests.js";
import { Connection } from "./connection.js";
import { OutputQueue } from "./output_queue.js";
import { FileInput } from "./file_input.js";
import { arrow, KeyBar } from "./keybar.js";
import { follow, howTo } from "./links.js";
import { selectsBy, watchMouse } from "./mouse.js";
import { awaitFont, measureFont, readTheme, watchTheme } from "./theme.js";
import { Note, Notice, shownAs, waits } from "./notice.js";
import { question } from "./pasting.js";
import { PathLinks } from "./path_links.js";
import * as protocol from "./protocol.js";
import { newScreen } from "./screen.js";
import { plainText } from "./sequences.js";
import { drawWithWebGL } from "./webgl.js";
import { linesOf, Wheel } from "./wheel.js";
import "@xterm/xterm/css/xterm.css";
import "./terminal.css";

const scrollback = 10_000; // lines; with tmux, tmux has the scrollback
const resizePause = 60; // ms without another resize
const settling = 1500; // ms after the first screen
const outputWindow = 2 * 1024 * 1024; // bytes of output that may be in flight

let toldOfMouse = false; // in this page, that a program has the mouse

/**
 * mount fills element with a terminal and returns its handle.
 *
 * options: url (of the WebSocket), tab (name, for the label), label, screenReader (boolean), wake (boolean: the user has asked
 * for this terminal, so it may wake the sandbox), onState(state, reason) with Connection's states, or "frozen" instead of
 * "asleep", and onTitle(title), which comes from the sandbox unchecked. element also gets the events "terminal-state" and
 * "terminal-title", with these as detail. sandbox is {id, name}, for the question whether it may use the clipboard. Optional:
 * history(part) → Promise<{full, text}> returns the scrollback that the sandbox keeps, or "", and whether a program has the whole
 * screen (internal/terminal/text.go has the parts); files makes paths links and saves pasted files (path_links.js, file_input.js); copyOnSelect() says whether to copy
 * each selection.
 *
 * The handle: focus(), fit(), reconnect() (the user's request, so it wakes the sandbox), rejoin() (after something else woke
 * it), rest(how) (the sandbox is "frozen", "asleep", or anything else for neither), find(), select() (opens the scrollback),
 * copyAll(), copy(), paste(text), pasteClipboard(), clipboard.allowed (whether programs may copy), setScreenReader(on), state, text() (the screen's lines, for tests), dispose().
 */
export function mount(element, options) {
  return new MountedTerminal(element, options);
}

class MountedTerminal {
  #away = new AbortController();
  #resizeTimer = 0;
  #tmux = false; // runs in the sandbox
  #awaitingScreen = false; // the next output is the first of its connection
  #painted = false; // it has shown a screen
  #mayUseWebGL = false; // that was some time ago, and it was not tried yet
  #rest = ""; // how the sandbox rests, if known: "asleep" or "frozen"
  #reason = "";
  #handled = false; // xterm.js has handled the last keydown
  #bar = null; // the find bar over the live screen
  #scrollback = null; // the scrollback overlay

  constructor(element, options) {
    this.options = options;
    this.root = h("div", { class: "terminal-root" });
    element.replaceChildren(this.root);
    this.element = element;
    this.notice = new Notice(this.root, () => this.reconnect());
    this.#connect(); // first of all: the shell starts while the screen is made
    this.#makeScreen();
    this.note = new Note(this.root);
    this.chip = new Chip(this.root);
    this.clipboard = new ClipboardRequests(this.root, {
      box: options.sandbox?.id ?? "", name: options.sandbox?.name ?? "The sandbox",
      say: (text) => this.chip.show(text), focus: () => this.focus(),
    });
    this.keys = matchMedia("(pointer: coarse)").matches ? this.#makeKeys() : null;
    this.output = new OutputQueue(
      (bytes, done) => this.screen.write(bytes, () => this.#drawn(done)),
      (bytes) => this.connection.send(protocol.ack(bytes)),
    );
    this.#watch();
    this.fit();
  }

  #connect() {
    this.connection = new Connection(this.options.url, {
      open: () => this.#opened(),
      message: (buffer) => this.#received(buffer),
      state: (state, reason) => this.#changed(state, reason),
      rest: (how) => this.rest(how), doubt: (text) => this.chip.show(text),
    });
    if (this.options.wake) this.connection.wake();
    else this.connection.connect();
  }

  get state() {
    return this.connection.state;
  }

  focus() {
    this.screen.focus();
  }

  // fit resizes the terminal to its element, if that is visible.
  fit() {
    if (!this.#visible()) return;
    if (this.#mayUseWebGL) this.#useWebGL();
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

  // copy copies what is selected, here or in the scrollback. asked is false after a selection, which may be of nothing.
  async copy(asked = true) {
    const text = this.#scrollback?.screen.getSelection() || this.screen.getSelection();
    if (!text) return asked && this.chip.show("Nothing is selected. Drag over text to select it.");
    this.#copied(await copy(text));
  }

  // find searches the screen, or the whole scrollback where the sandbox keeps it.
  async find() {
    if (this.#scrollback) return this.#scrollback.find();
    const past = await this.#history();
    if (past) return (await this.#openScrollback(past)).find();
    const { FindBar } = await import("./find_bar.js");
    this.#bar ??= new FindBar(this.screen, this.root, () => {
      this.#bar = null;
      this.focus();
    });
    this.#bar.open();
  }

  // select opens the scrollback to select in it by keyboard.
  async select() {
    const past = this.#scrollback ?? (await this.#openScrollback((await this.#history()) || this.text().join("\n")));
    past.settle();
    past.focus();
    return past;
  }

  // copyAll copies the scrollback and the screen.
  async copyAll() {
    const past = await this.#history();
    this.#copied(await copy((past ? plainText(past) : this.text().join("\n")).trimEnd()));
  }

  paste(text) {
    this.screen.paste(text);
  }

  // pasteClipboard pastes what the clipboard has, if the browser lets the page read it: only with HTTPS or on localhost.
  async pasteClipboard() {
    this.#closeView();
    try {
      await this.pasteChecked(await readClipboard());
    } catch {
      this.chip.show(`The browser did not allow it. Press ${isMac ? "⌘V" : "Ctrl+Shift+V"} to paste.`);
      this.focus();
    }
  }

  // pasteChecked pastes a text, but asks first when it has many lines.
  async pasteChecked(text) {
    const asked = question(text, this.screen.modes.bracketedPasteMode);
    if (text && (!asked || (await ask(asked)))) this.paste(text);
    this.focus();
  }

  setScreenReader(on) {
    this.screen.options.screenReaderMode = on;
  }

  // text returns the lines of the screen and its scrollback.
  text() {
    const buffer = this.screen.buffer.active;
    return Array.from({ length: buffer.length }, (_, i) => buffer.getLine(i)?.translateToString(true) ?? "");
  }

  dispose() {
    if (this.#away.signal.aborted) return;
    this.#away.abort();
    clearTimeout(this.#resizeTimer);
    this.#scrollback?.close();
    this.connection.dispose();
    this.notice.dispose();
    this.chip.dispose();
    this.screen.dispose();
    this.root.remove();
  }

  #makeScreen() {
    Object.assign(this, newScreen(this.root, {
      cursorBlink: !matchMedia("(prefers-reduced-motion: reduce)").matches,
      macOptionClickForcesSelection: true,
      rightClickSelectsWord: false,
      screenReaderMode: this.options.screenReader ?? false,
      scrollback,
    }));
    this.screen.loadAddon(new WebLinksAddon(follow, { hover: (_, address) => this.#setTooltip(address), leave: () => this.#setTooltip("") }));
    this.screen.parser.registerOscHandler(52, (data) => this.clipboard.put(data));
    const stage = h("div", { class: "terminal-stage" });
    this.root.append(stage);
    this.screen.open(stage);
    this.#useMouse(stage);
    this.screen.textarea?.setAttribute("aria-label", this.options.label ?? `Terminal ${this.options.tab ?? ""}`.trim());
    this.screen.textarea?.addEventListener("keydown", (event) => { this.#handled = event.defaultPrevented; }, true);
    this.screen.attachCustomKeyEventHandler((event) => this.#key(event));
    this.screen.onData((data) => {
      this.wheel.forget();
      this.#type(this.keys?.typed(data) ?? data);
    });
    this.screen.onBinary((data) => this.#type(protocol.bytesOf(data)));
    this.screen.onResize(({ cols, rows }) => this.connection?.send(protocol.resize(cols, rows)));
    // tmux asks what the terminal is, needs none of the answers (tmux.conf), and types those that are late into the shell.
    for (const id of [{ final: "c" }, { prefix: ">", final: "c" }, { prefix: ">", final: "q" }]) this.screen.parser.registerCsiHandler(id, () => this.#tmux);
    this.screen.onTitleChange((title) => this.#emit("title", title, this.options.onTitle));
  }

  #makeKeys() {
    return new KeyBar(this.root, {
      send: (text) => {
        this.#type(text);
        this.focus();
      },
      application: () => this.screen.modes.applicationCursorKeysMode,
      paste: async () => this.pasteChecked(await readClipboard().catch(() => prompt("Paste here:") ?? "")),
    });
  }

  // #history returns the scrollback that the sandbox keeps, "" when xterm.js has it.
  async #history() {
    if (this.screen.buffer.active.type === "normal" || this.state !== "connected") return "";
    return (await this.options.history?.("").catch(() => null))?.text || "";
  }

  // #look is for the wheel and the mouse, which open the scrollback only where tmux has it.
  async #look(part) {
    return (await this.options.history?.(part)) ?? { full: false, text: "" };
  }

  async #openScrollback(text, view = false) {
    const { Scrollback } = await import("./scrollback.js");
    if (this.#scrollback?.isView && !view) this.#scrollback.close();
    this.#scrollback ??= new Scrollback(this.root, text, newScreen, {
      view: view ? this.screen : null,
      selected: () => this.#selected(),
      copied: (done) => this.#copied(done),
      label: this.options.label ?? `terminal ${this.options.tab ?? ""}`.trim(),
      links: this.options.files && ((screen) => this.#links(screen)),
      closed: () => {
        this.#scrollback = null;
        if (!this.#away.signal.aborted) this.focus();
      },
    });
    await this.#scrollback.shown;
    return this.#scrollback;
  }

  #links(screen) {
    return new PathLinks(screen, this.options.files, (path) => this.#setTooltip(path));
  }

  #setTooltip(what) {
    this.root.title = what && `${what}\n${howTo}`;
  }

  #drawn(done) {
    done();
    if (this.#painted) return;
    this.#painted = true;
    this.fit();
    setTimeout(() => {
      this.#mayUseWebGL = true;
      if (!this.#away.signal.aborted) this.fit();
    }, settling);
  }

  // #useWebGL: its code is large, and takes long to begin, so the first screen and the first prompt do without.
  async #useWebGL() {
    this.#mayUseWebGL = false;
    try {
      await drawWithWebGL(this.screen, { gone: () => this.#away.signal.aborted, gaveUp: () => this.fit() });
      this.fit();
    } catch {
      // Without WebGL, or without its code, it is drawn as before.
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
    watchTheme(() => {
      for (const screen of [this.screen, this.#scrollback?.screen]) if (screen) Object.assign(screen.options, readTheme(this.root));
      this.fit();
    }, signal);
    awaitFont(this.root).then((late) => {
      if (!late || signal.aborted) return;
      measureFont(this.screen);
      this.fit();
    });
    new Attention(document, () => this.#visible() && this.connection.send(protocol.watched()), signal);
    this.#watchFiles(signal);
    this.root.addEventListener("paste", (event) => this.#confirmPaste(event), { capture: true, signal });
    this.root.addEventListener("click", () => this.state === "asleep" && !this.screen.hasSelection() && this.reconnect(), { signal });
  }

  #watchFiles(signal) {
    const { files } = this.options;
    if (!files) return;
    this.screen.registerLinkProvider(this.#links(this.screen));
    new FileInput(this.root, {
      put: (name, file, stop) => files.put(name, file, stop), signal,
      say: (text, tone, stop) => this.note.show(text, tone, stop), type: (text) => this.paste(text),
    });
  }

  // #useMouse: xterm.js selects. Where tmux has the scrollback, the wheel and a selection dragged above the screen open it.
  #useMouse(stage) {
    this.wheel = new Wheel({
      look: (part) => this.#look(part),
      open: (text, lines) => this.#openView(text, lines),
      arrows: (lines) => this.#type(arrow(lines < 0 ? "up" : "down", this.screen.modes.applicationCursorKeysMode).repeat(Math.abs(lines))),
    });
    this.screen.attachCustomWheelEventHandler((event) => !this.#turns(event));
    watchMouse(stage, this.screen, {
      selected: () => this.#selected(),
      taken: () => this.#tellOfMouse(),
      above: (press, held) => this.#dragAbove(press, held),
    }, this.#away.signal);
  }

  // #turns says whether the wheel is ours: it is neither a program's nor can xterm.js scroll.
  #turns(event) {
    if (!this.#tmux || event.ctrlKey || event.deltaY === 0 || this.screen.modes.mouseTrackingMode !== "none") return false;
    event.preventDefault();
    this.#turn(linesOf(event, this.root.querySelector(".xterm-screen").clientHeight / this.screen.rows, this.screen.rows));
    return true;
  }

  #turn(lines) {
    if (this.#scrollback) this.#scrollback.scroll(Math.round(lines));
    else if (this.state === "connected") this.wheel.turn(lines);
  }

  async #openView(text, lines) {
    if (this.#away.signal.aborted || this.#scrollback) return;
    const past = await this.#openScrollback(text, true);
    if (!past.scrolls) return past.close();
    past.scroll(-lines);
    this.focus();
  }

  async #dragAbove(press, held) {
    if (!this.#tmux) return;
    const { full, text } = await this.#look("unless-full").catch(() => ({}));
    if (full || !text || !held() || this.#scrollback) return;
    const past = await this.#openScrollback(text, true);
    const at = held();
    if (!at) return past.close();
    this.screen.clearSelection();
    past.drag(press, at);
  }

  #closeView() {
    if (this.#scrollback?.isView) this.#scrollback.close();
  }

  // #moves handles a key while the mouse has opened the scrollback: typing closes it, and reaches the program.
  #moves(event) {
    if (["Shift", "Control", "Alt", "Meta"].includes(event.key) || this.#shortcut(event)) return false;
    const pages = event.shiftKey ? { PageUp: -1, PageDown: 1 }[event.key] : 0;
    if (pages) this.#scrollback.scroll(pages * (this.screen.rows - 1));
    else this.#closeView();
    if (pages || event.key === "Escape") event.preventDefault();
    return Boolean(pages) || event.key === "Escape";
  }

  // #selected: the mouse has selected something.
  #selected() {
    if (this.options.copyOnSelect?.() ?? true) this.copy(false);
    else this.chip.show(`Press ${isMac ? "⌘C" : "Ctrl+Shift+C"} to copy.`);
    if (this.#scrollback?.isView) this.focus();
  }

  #copied(done) {
    this.chip.show(done ? "Copied" : "The browser did not allow copying.");
  }

  #tellOfMouse() {
    if (!toldOfMouse) this.chip.show(`This program uses the mouse. ${selectsBy} selects text.`);
    toldOfMouse = true;
  }

  // #confirmPaste asks before many lines are pasted.
  #confirmPaste(event) {
    this.#closeView();
    const text = event.clipboardData?.getData("text/plain") ?? "";
    if (!question(text, this.screen.modes.bracketedPasteMode)) return;
    event.preventDefault();
    event.stopPropagation();
    this.pasteChecked(text);
  }

  #visible() {
    return this.root.clientWidth > 0 && this.root.clientHeight > 0;
  }

  // #key returns false for keys that the shell must not get. Ctrl+Shift+V and the menu's paste reach xterm.js as paste
  // events.
  #key(event) {
    if (event.type === "keypress") return !this.#handled; // sent by browser automation all the same
    if (event.type !== "keydown") return true;
    if (this.#scrollback?.isView && this.#moves(event)) return false;
    if (waits(this.state) && event.key === "Enter") {
      event.preventDefault();
      this.reconnect();
      return false;
    }
    const own = this.#shortcut(event);
    if (own) {
      event.preventDefault();
      own();
    }
    return !own && !(combined(event) && event.code === "KeyV");
  }

  #shortcut(event) {
    if (event.metaKey && !event.ctrlKey && !event.altKey && event.code === "KeyF") return () => this.find();
    if (event.metaKey && !event.ctrlKey && !event.altKey && event.code === "KeyC") return () => this.copy();
    if (event.key === "F6" && this.clipboard.waits) return () => this.clipboard.enter();
    if (event.key === "PageUp" && event.shiftKey && this.#tmux) return () => this.#turn(-this.screen.rows + 1);
    if (!combined(event)) return null;
    return { KeyC: () => this.copy(), KeyF: () => this.find(), Space: () => this.select() }[event.code];
  }

  #type(data) {
    this.connection.type(protocol.input(data));
  }

  #opened() {
    this.#awaitingScreen = true;
    this.output.restart();
    this.connection.send(protocol.hello(this.screen.cols, this.screen.rows, outputWindow));
  }

  // #received clears the screen before the first output: every connection starts with a full redraw.
  #received(buffer) {
    this.#tmux ||= protocol.isTTYD(buffer);
    const bytes = protocol.output(buffer);
    if (!bytes) return;
    if (this.#awaitingScreen) {
      this.#awaitingScreen = false;
      this.screen.reset();
    }
    this.output.push(bytes);
  }

  #changed(state, reason) {
    this.#reason = reason;
    const shown = shownAs(state, this.#rest);
    this.root.dataset.state = shown;
    this.notice.show(["silent", "reconnecting"].includes(shown) && this.options.onState ? "connected" : shown, reason); // the owner shows it
    this.#emit("state", shown, (value) => this.options.onState?.(value, reason));
  }

  #emit(what, value, callback) {
    callback?.(value);
    this.element.dispatchEvent(new CustomEvent(`terminal-${what}`, { detail: value }));
  }
}

// combined says whether exactly Ctrl and Shift are held.
function combined(event) {
  return event.ctrlKey && event.shiftKey && !event.altKey && !event.metaKey;
}
