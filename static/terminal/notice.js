// Notice is what a terminal says of its connection, over its screen.
import { h } from "../js/dom.js";

const texts = {
  connecting: "Connecting…",
  reconnecting: "Reconnecting…",
  waking: "Waking…",
};
const patience = 400; // ms before a connection under way is worth a word

// What the button of a state that stays says.
const buttons = { closed: "Connect", asleep: "Wake", frozen: "Go on" };

// What a sandbox at rest is, and what its person gets by coming back.
const rests = {
  asleep: ["Asleep.", "wake"],
  frozen: ["Frozen. Its programs stand still.", "go on"],
};

// textOf is the words for a state, "" for none. touch is for a screen without keys.
export function textOf(state, reason, touch = false) {
  if (state === "closed") return `Disconnected: ${reason} ${touch ? "Tap Connect" : "Press Enter"} to connect again.`;
  if (!(state in rests)) return texts[state] ?? "";
  const [word, gain] = rests[state];
  const press = touch ? "Tap" : "Press Enter or click";
  return reason ? `Still ${state}: ${reason} ${press} to try again.` : `${word} ${press} to ${gain}.`;
}

// shownAs is the state to show for a connection's: the connection knows that the sandbox rests, and not how.
export function shownAs(state, rest) {
  return state === "asleep" && rest === "frozen" ? "frozen" : state;
}

// waits says whether a state goes on only when its person wants it to.
export function waits(state) {
  return state in buttons;
}

export class Notice {
  #timer = 0;

  // again is called when the person asks for a new connection.
  constructor(parent, again) {
    this.text = h("span");
    this.button = h("button", { type: "button", click: again });
    this.element = h("div", { class: "terminal-notice", role: "status", hidden: true }, this.text, this.button);
    parent.append(this.element);
  }

  show(state, reason) {
    clearTimeout(this.#timer);
    const text = textOf(state, reason, matchMedia("(pointer: coarse)").matches);
    const change = () => {
      this.element.hidden = text === "";
      this.element.dataset.state = state;
      this.button.hidden = !waits(state);
      this.button.textContent = buttons[state] ?? "";
      this.text.textContent = text;
    };
    if (state === "connecting" || state === "reconnecting") this.#timer = setTimeout(change, patience);
    else change();
  }

  dispose() {
    clearTimeout(this.#timer);
    this.element.remove();
  }
}

// Note says, in a corner of the terminal, how something else goes: a file that is being saved.
export class Note {
  constructor(parent) {
    this.text = h("span");
    this.button = h("button", { type: "button" });
    this.element = h("div", { class: "terminal-note", role: "status", hidden: true }, this.text, this.button);
    parent.append(this.element);
  }

  // show says text, "" for nothing. stop, which may be missing, ends what goes on; else the button takes the note away.
  show(text, tone, stop) {
    this.element.hidden = text === "";
    this.element.dataset.tone = tone;
    this.text.textContent = text;
    this.button.textContent = stop ? "Cancel" : "Close";
    this.button.onclick = stop ?? (() => this.show("", ""));
  }
}
