// Puts text that programs send (OSC 52) into the clipboard, if the user lets the sandbox do so. It asks once per sandbox, without
// taking the focus; F6 moves there while the question is shown.
import { copy } from "../js/clipboard.js";
import { h } from "../js/dom.js";
import { decide, decision, excerpt, mostText, requested } from "./osc52.js";

export class ClipboardRequests {
  #text = ""; // the last request that is not answered

  // root gets the question. box is the sandbox's id, name what it is called; say(text) shows a short message; focus() returns
  // the focus to the terminal.
  constructor(root, { box, name, say, focus }) {
    Object.assign(this, { box, name, say, focus });
    this.text = h("span");
    this.element = h("div", { class: "terminal-note terminal-request", role: "group", "aria-label": "Clipboard", hidden: true },
      h("span", { role: "status" }, this.text), this.buttons = h("span", { class: "terminal-request-buttons" }));
    root.append(this.element);
  }

  get allowed() {
    return decision(localStorage, this.box) === "allow";
  }

  set allowed(yes) {
    decide(localStorage, this.box, yes ? "allow" : "never");
    this.close();
  }

  // put handles a request. It returns true: nobody else shall.
  put(data) {
    const request = requested(data);
    const decided = decision(localStorage, this.box);
    if (!request || decided === "never") return true;
    if (request.over) this.say(`A program wanted to copy ${Math.ceil(request.over / 1024)} KiB. The limit is ${mostText / 1024} KiB.`);
    else if (decided === "allow") this.#copy(request.text);
    else this.#ask(request.text);
    return true;
  }

  // waits says whether the question is shown.
  get waits() {
    return !this.element.hidden;
  }

  // enter moves the focus to the question.
  enter() {
    this.buttons.querySelector("button").focus();
  }

  close() {
    if (this.element.hidden) return;
    const back = this.element.contains(document.activeElement);
    this.element.hidden = true;
    this.#text = "";
    if (back) this.focus();
  }

  #ask(text) {
    this.#text = text;
    const first = this.element.hidden;
    this.text.replaceChildren(`${this.name} wants to put text into your clipboard: `, h("q", {}, excerpt(text)));
    if (first) this.#show(
      ["Allow", () => {
        const waiting = this.#text;
        this.allowed = true;
        this.#copy(waiting);
      }],
      ["Never for this sandbox", () => (this.allowed = false)],
    );
  }

  // #copy copies, or asks for the click that the browser wants first.
  async #copy(text) {
    if (await copy(text)) return this.say("Copied");
    this.#text = text;
    this.text.replaceChildren(`${this.name} has text for your clipboard: `, h("q", {}, excerpt(text)));
    this.#show(["Copy", async () => {
      const waiting = this.#text;
      this.close();
      if (await copy(waiting)) this.say("Copied");
    }], ["Close", () => this.close()]);
  }

  #show(...buttons) {
    this.buttons.replaceChildren(...buttons.map(([text, press]) => h("button", { type: "button", title: "F6 moves here", click: press }, text)));
    this.element.hidden = false;
  }
}
