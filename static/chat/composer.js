// Where a person writes to the agent.
import { button, h, icon } from "../js/dom.js";
import { toast } from "../js/toast.js";

const most = 20; // files beside a message

export class Composer {
  #files = []; // {name, type, path}
  #edits = null; // what sends an edited message

  // files is the address of the sandbox's files. send(message) resolves to whether it was taken; stop() ends the turn.
  constructor({ files, send, stop }) {
    Object.assign(this, { address: files, send, stop });
    this.text = h("textarea", { class: "input", rows: "1", "aria-label": "Message", placeholder: "Message the agent", "data-focus": true });
    this.chips = h("div", { class: "chat-files" });
    this.hint = h("p", { class: "quiet", hidden: true });
    this.input = h("input", { type: "file", multiple: true, hidden: true, change: () => this.#attach([...this.input.files]) });
    this.stopper = button("stop", "Stop", () => this.stop(), { kind: "" });
    this.sender = h("button", { type: "submit", class: "button primary square", title: "Send (Enter)", "aria-label": "Send" }, icon("send"));
    this.element = h("form", { class: "chat-composer" }, this.hint, this.chips, h("div", { class: "chat-write" }, button("clip", "Attach files", () => this.input.click()), this.input, this.text, this.stopper, this.sender));
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.text.addEventListener("keydown", (event) => this.#key(event));
    this.text.addEventListener("input", () => this.#grow());
    this.text.addEventListener("paste", (event) => this.#take(event, event.clipboardData));
    this.element.addEventListener("dragover", (event) => event.preventDefault());
    this.element.addEventListener("drop", (event) => this.#take(event, event.dataTransfer));
    this.busy(false);
  }

  focus() {
    this.text.focus();
  }

  busy(yes) {
    this.stopper.hidden = !yes;
    this.text.placeholder = yes ? "Queue a message" : "Message the agent";
  }

  // edit lets the person change a message that was sent; sent(text) sends it.
  edit(text, sent) {
    this.#edits = sent;
    this.text.value = text;
    this.hint.replaceChildren("Editing a message: it is sent in a new conversation. ", h("button", { type: "button", class: "link", click: () => this.#clear() }, "Cancel"));
    this.hint.hidden = false;
    this.#grow();
    this.focus();
  }

  #clear() {
    this.#edits = null;
    this.#files = [];
    this.text.value = "";
    this.hint.hidden = true;
    this.#drawFiles();
    this.#grow();
  }

  #key(event) {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.ctrlKey || event.altKey) return;
    event.preventDefault();
    this.#submit();
  }

  // #submit empties the place at once, and gives back what was not taken. What is submitted before the last message was taken is sent after it.
  async #submit() {
    const [text, files, edits] = [this.text.value.replace(/^\s*\n|\s+$/g, ""), this.#files, this.#edits];
    if (!text && !files.length) return;
    if (this.sending) {
      this.again = true;
      return;
    }
    this.sending = true;
    this.#clear();
    const taken = edits ? await edits(text) : await this.send({ text, files });
    const again = taken && this.again;
    this.sending = this.again = false;
    if (again) return this.#submit();
    if (taken || this.text.value) return;
    if (edits) this.edit(text, edits);
    this.text.value = text;
    this.#files = files;
    this.#drawFiles();
    this.#grow();
  }

  #grow() {
    this.text.style.height = "auto";
    this.text.style.height = `${Math.min(this.text.scrollHeight + 2, 240)}px`;
  }

  #take(event, data) {
    const files = [...(data?.files ?? [])];
    if (!files.length) return;
    event.preventDefault();
    this.#attach(files);
  }

  // #attach puts files into the sandbox, where the agent finds them.
  async #attach(files) {
    this.input.value = "";
    for (const file of files.slice(0, most - this.#files.length)) {
      const name = file.name || "picture.png";
      const path = `.attachments/${Date.now()}-${name.replace(/[^\p{L}\p{N}._-]/gu, "_").slice(-100)}`;
      try {
        const answer = await fetch(`${this.address}?path=${encodeURIComponent(path)}&parents=true`, { method: "PUT", body: file });
        if (!answer.ok) throw new Error(`The server responded with status ${answer.status}.`);
        this.#files.push({ name, type: file.type || "application/octet-stream", path });
      } catch (err) {
        toast(`${name} was not attached. ${err.message}`, { bad: true });
      }
    }
    this.#drawFiles();
  }

  #drawFiles() {
    this.chips.replaceChildren(...this.#files.map((f, i) => h("span", { class: "chip" }, icon("clip"), f.name, button("close", `Remove ${f.name}`, () => {
      this.#files.splice(i, 1);
      this.#drawFiles();
    }))));
  }
}
