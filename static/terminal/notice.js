// Notice is what a terminal says of its connection, over its screen.
const texts = {
  connecting: "Connecting…",
  reconnecting: "Reconnecting…",
  waking: "Waking…",
};
const patience = 400; // ms before a connection under way is worth a word

// What the button of a state that stays says.
const buttons = { closed: "Connect", asleep: "Wake" };

// textOf is the words for a state, "" for none.
export function textOf(state, reason) {
  if (state === "closed") return `Disconnected: ${reason} Press Enter to connect again.`;
  if (state === "asleep") return reason ? `Still asleep: ${reason} Press Enter or click to try again.` : "Asleep. Press Enter or click to wake.";
  return texts[state] ?? "";
}

// waits says whether a state goes on only when its person wants it to.
export function waits(state) {
  return state in buttons;
}

export class Notice {
  #timer = 0;

  // again is called when the person asks for a new connection.
  constructor(parent, again) {
    this.element = document.createElement("div");
    this.element.className = "terminal-notice";
    this.element.setAttribute("role", "status");
    this.element.hidden = true;
    this.text = document.createElement("span");
    this.button = document.createElement("button");
    this.button.type = "button";
    this.button.addEventListener("click", again);
    this.element.append(this.text, this.button);
    parent.append(this.element);
  }

  show(state, reason) {
    clearTimeout(this.#timer);
    const text = textOf(state, reason);
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
