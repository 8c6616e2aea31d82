// Buttons below a terminal for keys that on-screen keyboards lack.
import { h } from "../js/dom.js";

const arrows = { up: "A", down: "B", right: "C", left: "D" };

// control returns what a key sends with Ctrl held, or null.
export function control(text) {
  if (text.length !== 1) return null;
  const code = text.toUpperCase().charCodeAt(0);
  if (code >= 0x40 && code <= 0x5f) return String.fromCharCode(code - 0x40);
  return { " ": "\0", "?": "\x7f" }[text] ?? null;
}

// arrow returns what an arrow key sends, in application cursor mode or not.
export function arrow(name, application) {
  return `\x1b${application ? "O" : "["}${arrows[name]}`;
}

export class KeyBar {
  #held = false;

  // send(text) types a text, application() returns the cursor mode, paste() pastes.
  constructor(root, { send, application, paste }) {
    this.element = h("div", { class: "terminal-keys", role: "toolbar", "aria-label": "Keys" });
    const key = (text, label, press) => {
      const keepFocus = (event) => event.preventDefault(); // so that the on-screen keyboard stays open
      const b = h("button", { type: "button", "aria-label": label, pointerdown: keepFocus, click: press }, text);
      this.element.append(b);
      return b;
    };
    key("Esc", "Escape", () => send("\x1b"));
    this.ctrl = key("Ctrl", "Control, for the next key", () => this.#hold(!this.#held));
    this.ctrl.setAttribute("aria-pressed", "false");
    key("Tab", "Tab", () => send("\t"));
    for (const [text, name] of [["←", "left"], ["↓", "down"], ["↑", "up"], ["→", "right"]]) key(text, `Arrow ${name}`, () => send(arrow(name, application())));
    for (const text of ["|", "/", "-", "~"]) key(text, text, () => send(this.typed(text)));
    key("Paste", "Paste", paste);
    root.append(this.element);
  }

  // typed returns the input for a text, applying Ctrl once if it is held.
  typed(text) {
    if (!this.#held) return text;
    const made = control(text);
    if (made !== null) this.#hold(false);
    return made ?? text;
  }

  #hold(held) {
    this.#held = held;
    this.ctrl.setAttribute("aria-pressed", String(held));
  }
}
