// Where a person writes to the agent.
import { button, h, icon } from "../js/dom.js";
import { toast } from "../js/toast.js";
import { Commands } from "./commands.js";
import { quote } from "./comments.js";
import { pictureTypes } from "./model.js";

const most = 20; // files beside a message
const sight = 5 << 20; // bytes of the pictures beside a message that the model sees

export class Composer {
  #files = []; // {name, type, path, preview, upload}: upload ends the sending of one that is not there yet
  #uploads = 0;
  #waits = false; // the message is sent when its files are there
  #edits = null; // what sends an edited message
  #draft = ""; // what was written before that

  // files is the address of the sandbox's files. send(message) resolves to whether it was taken; stop() ends the turn.
  // comments wait for the next message.
  constructor({ files, comments, send, stop }) {
    Object.assign(this, { address: files, comments, send, stop });
    this.text = h("textarea", { class: "input", rows: "1", "aria-label": "Message", placeholder: "Message the agent", "data-focus": true });
    this.commands = new Commands(this.text, () => this.#grow());
    this.chips = h("div", { class: "chat-files" });
    this.hint = h("p", { class: "quiet", hidden: true });
    this.input = h("input", { type: "file", multiple: true, hidden: true, change: () => this.#attach([...this.input.files]) });
    this.stopper = button("stop", "Stop", () => this.stop(), { kind: "" });
    this.sender = h("button", { type: "submit", class: "button primary square", title: "Send (Enter)", "aria-label": "Send" }, icon("send"));
    this.element = h("form", { class: "chat-composer" }, this.hint, comments.element, this.chips, h("div", { class: "chat-write" }, this.commands.element, button("clip", "Attach files", () => this.input.click()), this.input, this.text, this.stopper, this.sender));
    this.element.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#submit();
    });
    this.text.addEventListener("keydown", (event) => this.#key(event));
    this.text.addEventListener("input", () => this.#grow());
    this.text.addEventListener("paste", (event) => this.#take(event, event.clipboardData));
    this.busy(false);
  }

  // drops has files that are dropped on an element put beside the message. The browser would leave the page to open one.
  drops(element) {
    element.addEventListener("dragover", (event) => {
      if (!event.dataTransfer?.types?.includes("Files")) return;
      event.preventDefault();
      element.classList.add("takes-files");
    });
    element.addEventListener("dragleave", (event) => !element.contains(event.relatedTarget) && element.classList.remove("takes-files"));
    element.addEventListener("drop", (event) => {
      element.classList.remove("takes-files");
      this.#take(event, event.dataTransfer);
    });
  }

  focus() {
    this.text.focus();
  }

  busy(yes) {
    this.stopper.hidden = !yes;
    this.text.placeholder = yes ? "Queue a message" : this.commands.any ? "Message the agent, or / for its commands" : "Message the agent";
  }

  // edit lets the person change a message that was sent; sent(text) sends it.
  edit(text, sent) {
    if (!this.#edits) this.#draft = this.text.value;
    this.#waits = false; // what is edited is not sent when files of the draft are there
    this.#edits = sent;
    this.text.value = text;
    this.hint.replaceChildren("Editing a message: it is sent in a new conversation. ", h("button", { type: "button", class: "link", click: () => {
      this.#clear();
      this.focus();
    } }, "Cancel"));
    this.hint.hidden = false;
    this.#drawFiles();
    this.#grow();
    this.focus();
  }

  #clear() {
    this.text.value = this.#edits ? this.#draft : "";
    if (!this.#edits) this.#files = [];
    this.#edits = null;
    this.hint.hidden = true;
    this.#drawFiles();
    this.#grow();
    this.commands.look();
  }

  #key(event) {
    if (this.commands.key(event)) {
      event.preventDefault();
      return event.stopPropagation();
    }
    if (event.key === "Escape" && this.#edits) {
      event.preventDefault();
      return this.#clear();
    }
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.ctrlKey || event.altKey) return;
    event.preventDefault();
    this.#submit();
  }

  // #submit empties the place at once, and gives back what was not taken. What is submitted before the last message was taken is sent after it.
  async #submit() {
    const [text, files, edits] = [this.text.value.replace(/^\s*\n|\s+$/g, ""), this.#files, this.#edits];
    if (!text && (edits || (!files.length && !this.comments.list.length))) return;
    const late = !edits && files.find((f) => f.upload);
    this.#waits = Boolean(late);
    if (late) return toast(`The message is sent when ${late.name} is attached.`);
    if (this.sending) {
      this.again = true;
      return;
    }
    this.sending = true;
    this.#clear();
    const comments = edits ? [] : this.comments.take();
    const taken = edits ? await edits(text) : await this.send({ text: [quote(comments), text].filter(Boolean).join("\n\n"), files: files.map(({ name, type, path }) => ({ name, type, path })) });
    if (!taken) this.comments.put(comments);
    const again = taken && this.again;
    this.sending = this.again = false;
    if (again) return this.#submit();
    if (taken) return;
    if (edits) return this.edit(text, edits);
    this.text.value = [text, this.text.value].filter(Boolean).join("\n\n");
    this.#files = [...files, ...this.#files];
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
  #attach(files) {
    this.input.value = "";
    if (this.#edits) return toast("An edited message keeps its own files. Send others with a new message.", { bad: true });
    for (const file of files.slice(0, most - this.#files.length)) this.#upload(file);
  }

  async #upload(file) {
    const name = file.name || "picture.png";
    const path = `.attachments/${Date.now()}-${this.#uploads++}-${name.replace(/[^\p{L}\p{N}._-]/gu, "_").slice(-100)}`;
    const f = { name, type: file.type || "application/octet-stream", path, preview: "", upload: new AbortController() };
    this.#files.push(f);
    this.#drawFiles();
    try {
      const answer = await fetch(`${this.address}?path=${encodeURIComponent(path)}&parents=true`, { method: "PUT", body: file, signal: f.upload.signal });
      if (!answer.ok) throw new Error(`The server responded with status ${answer.status}.`);
      f.preview = await previewOf(file);
      f.upload = null;
    } catch (err) {
      if (!f.upload.signal.aborted) this.#waits = false; // the person is to know before it is sent
      if (!f.upload.signal.aborted) toast(`${name} was not attached. ${err.message}`, { bad: true });
      this.#files = this.#files.filter((o) => o !== f);
    }
    this.#drawFiles();
    if (this.#waits && !this.#files.some((o) => o.upload)) this.#submit();
  }

  // #drawFiles shows the files of the next message, which an edited one is not.
  #drawFiles() {
    const sign = (f) => (f.upload ? icon("state-busy") : f.preview ? h("img", { class: "chat-thumb", src: f.preview, alt: "" }) : icon("clip"));
    this.chips.replaceChildren(...(this.#edits ? [] : this.#files).map((f, i) => h("span", { class: "chip", title: f.upload && "It is being attached." }, sign(f), f.name, button("close", `Remove ${f.name}`, () => {
      f.upload?.abort();
      this.#files.splice(i, 1);
      this.#drawFiles();
      this.focus();
    }))));
  }
}

// previewOf gives a picture as an address; "" for what is none, or none that the model will see.
function previewOf(file) {
  if (!pictureTypes.test(file.type) || file.size > sight) return "";
  return new Promise((resolve) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => resolve("");
    reader.readAsDataURL(file);
  });
}
