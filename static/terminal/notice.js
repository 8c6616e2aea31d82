// What a terminal says about its connection, over its screen.
import { h } from "../js/dom.js";

const texts = {
  connecting: "Connecting…",
  silent: "No answer from the server…",
  reconnecting: "Reconnecting…",
  waking: "Waking…",
  deleted: "This sandbox was deleted.",
};
const patience = 400; // ms before a connection attempt is worth showing

// The buttons of the states that last until the user acts.
const buttons = { closed: "Connect", asleep: "Wake", frozen: "Resume" };

// The state and the action of a sandbox at rest.
const rests = {
  asleep: ["Asleep.", "wake"],
  frozen: ["Frozen. Its programs are paused.", "resume"],
};

// textOf returns the text for a state, "" for none. touch is for screens without a keyboard.
export function textOf(state, reason, touch = false) {
  if (state === "closed") return `Disconnected: ${reason} ${touch ? "Tap Connect" : "Press Enter"} to connect again.`;
  if (!(state in rests)) return texts[state] ?? "";
  const [word, gain] = rests[state];
  const press = touch ? "Tap" : "Press Enter or click";
  return reason ? `Still ${state}: ${reason} ${press} to try again.` : `${word} ${press} to ${gain}.`;
}

// shownAs returns the state to show: the connection does not know whether an unavailable sandbox is asleep or frozen.
export function shownAs(state, rest) {
  return state === "asleep" && rest === "frozen" ? "frozen" : state;
}

// waits says whether a state lasts until the user acts.
export function waits(state) {
  return state in buttons;
}

export class Notice {
  #timer = 0;

  // again() is called when the user wants to reconnect.
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

// Note shows the progress of something else in a corner of the terminal, such as a file that is being saved.
export class Note {
  constructor(parent) {
    this.text = h("span");
    this.button = h("button", { type: "button" });
    this.element = h("div", { class: "terminal-note", role: "status", hidden: true }, this.text, this.button);
    parent.append(this.element);
  }

  // show shows a text; "" hides the note. With stop() the button cancels, without it the button closes the note.
  show(text, tone, stop) {
    this.element.hidden = text === "";
    this.element.dataset.tone = tone;
    this.text.textContent = text;
    this.button.textContent = stop ? "Cancel" : "Close";
    this.button.onclick = stop ?? (() => this.show("", ""));
  }
}
