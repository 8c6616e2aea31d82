// UploadPanel shows the progress of uploads: a summary, and a list of active and failed ones.
import { button, h, icon } from "../js/dom.js";
import { choose } from "./dropped.js";
import { tell } from "./dialog.js";
import { nameElement, plainName } from "./names.js";
import { baseOf } from "./paths.js";
import { count, size, duration } from "./format.js";

const most = 40; // lines
const look = 3000; // ms over which the speed is averaged

export class UploadPanel {
  #frame = 0;
  #marks = []; // [time, bytes sent]
  #told = "";

  constructor(uploads) {
    this.uploads = uploads;
    this.title = h("span");
    this.details = h("span");
    this.bar = h("progress", { max: "1", "aria-label": "Uploads" });
    this.fold = button("down", "Show details", () => this.#toggle(), { "aria-expanded": "false" });
    this.stop = button("close", "Cancel all", () => this.#close());
    this.list = h("ul", { class: "upload-list", hidden: true });
    this.status = h("span", { class: "visually-hidden", role: "status" });
    this.element = h("div", { class: "uploads", hidden: true }, h("div", { class: "upload-head" }, icon("upload"), h("span", { class: "upload-words" }, this.title, this.details), this.fold, this.stop), this.bar, this.list, this.status);
  }

  #toggle() {
    this.list.hidden = !this.list.hidden;
    this.fold.setAttribute("aria-expanded", String(!this.list.hidden));
    this.fold.classList.toggle("turned", !this.list.hidden);
    this.draw();
  }

  #close() {
    if (this.uploads.open.length) this.uploads.cancelAll();
    else {
      for (const u of [...this.uploads.list]) this.uploads.cancel(u);
    }
  }

  // soon redraws with the next frame.
  soon() {
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.draw();
    });
  }

  draw() {
    const { list } = this.uploads;
    const total = this.uploads.total();
    const open = this.uploads.open.length;
    const wrong = list.filter((u) => u.state === "failed" || u.state === "missing");
    this.element.hidden = !list.length;
    if (wrong.length && this.list.hidden && !this.shownWrong) this.#toggle();
    this.shownWrong = wrong.length > 0;
    this.title.textContent = this.#words(total, open, wrong);
    this.details.textContent = open ? this.#pace(total) : "";
    this.bar.hidden = !open;
    if (total.bytes) this.bar.value = total.sent / total.bytes;
    else this.bar.removeAttribute("value");
    this.stop.title = open ? "Cancel all" : "Close";
    this.stop.setAttribute("aria-label", this.stop.title);
    this.#say(open, wrong.length, total);
    if (!this.list.hidden) this.#lines(list);
  }

  #words(total, open, wrong) {
    if (!open) {
      const done = total.done ? `${count(total.done, "file")} uploaded` : "";
      const bad = wrong.length ? `${count(wrong.length, "upload")} incomplete` : "";
      return [done, bad].filter(Boolean).join(", ");
    }
    return total.files > 1 ? `Uploading ${Math.min(total.done + 1, total.files)} of ${total.files}` : "Uploading";
  }

  #pace(total) {
    const speed = this.#speed(total.sent);
    const rest = speed > 0 ? `${size(speed)}/s · ${duration((total.bytes - total.sent) / speed)} left` : "";
    return [`${size(total.sent)} of ${size(total.bytes)}`, rest].filter(Boolean).join(" · ");
  }

  #speed(sent) {
    const now = performance.now();
    this.#marks = [...this.#marks.filter(([t, s]) => now - t < look && s <= sent), [now, sent]];
    const [t, s] = this.#marks[0];
    return now - t > 400 ? ((sent - s) * 1000) / (now - t) : 0;
  }

  #say(open, wrong, total) {
    const text = open ? `Uploading ${count(total.files, "file")}` : wrong ? `${count(wrong, "upload")} incomplete` : total.done ? "Upload complete" : "";
    if (text !== this.#told) this.status.textContent = this.#told = text;
  }

  #lines(list) {
    const rank = { failed: 0, missing: 0, asking: 1, broken: 1, sending: 1, waiting: 2, done: 3 };
    const sorted = [...list].sort((a, b) => rank[a.state] - rank[b.state]).slice(0, most);
    this.list.replaceChildren(...sorted.map((u) => this.#line(u)));
    if (list.length > most) this.list.append(h("li", { class: "upload more" }, `and ${count(list.length - most, "more", "more")}`));
  }

  #line(u) {
    const part = u.size ? u.sent / u.size : u.state === "done" ? 1 : 0;
    const words = {
      waiting: "Waiting", sending: `${Math.floor(part * 100)} %`, asking: "Name already taken", broken: "Connection lost, retrying…",
      failed: u.problem?.message, missing: "Interrupted. Choose the same file again to resume.", done: "Done",
    }[u.state];
    const bad = u.state === "failed" || u.state === "missing";
    return h("li", { class: `upload ${u.state}` },
      h("span", { class: "upload-name clip", title: plainName(u.path) }, nameElement(baseOf(u.path))),
      h("span", { class: bad ? "upload-fault" : "quiet" }, u.folder ? "Folder" : words),
      u.state === "failed" && button("restart", "Try again", () => this.uploads.retry(u)),
      u.state === "missing" && button("upload", "Choose the file", () => this.#adopt(u)),
      u.state !== "done" && button("close", u.state === "missing" ? "Remove" : "Cancel", () => this.uploads.cancel(u)));
  }

  async #adopt(upload) {
    const [file] = await choose({ many: false });
    if (file && !this.uploads.adopt(upload, file)) {
      tell("A different file", `The upload started with a file of ${size(upload.size)}, modified ${new Date(upload.modified).toLocaleString([], { hourCycle: "h23" })}. Upload this one separately.`);
    }
  }
}
