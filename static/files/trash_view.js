// TrashView lists the trash of the sandbox's user, to restore items or delete them for good.
import { problemOf } from "./api.js";
import { confirm } from "./dialog.js";
import { announce } from "../js/announce.js";
import { button, h, icon } from "../js/dom.js";
import { iconOf } from "./kinds.js";
import { nameElement, plainName } from "./names.js";
import { baseOf, parentOf, tidy } from "./paths.js";
import { count, shortTime, size, fullTime } from "./format.js";

const slow = 150; // ms before loading is shown

export class TrashView {
  #list = [];
  #picked = new Set();

  // owner: {files, home, close(), restored(paths)}
  constructor(owner) {
    this.owner = owner;
    this.rows = h("div", { class: "trash-rows", role: "group", "aria-label": "Trash" });
    this.note = h("div", { class: "find-note", role: "status" });
    this.restore = h("button", { type: "button", class: "button low", click: () => this.#restore() }, icon("undo"), "Restore");
    this.erase = h("button", { type: "button", class: "button low", click: () => this.#erase() }, "Delete permanently");
    this.empty = h("button", { type: "button", class: "button low bare", click: () => this.#empty() }, "Empty trash");
    this.element = h("div", { class: "trash" },
      h("div", { class: "view-head" }, button("left", "Back to the files", () => this.owner.close(), { "data-focus": true }), h("h2", {}, "Trash"), h("span", { class: "view-acts" }, this.empty)),
      this.note, this.rows, h("div", { class: "view-foot" }, this.restore, this.erase));
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !event.target.closest("dialog")) this.owner.close();
    });
  }

  async start() {
    const waits = setTimeout(() => (this.note.textContent = "Loading…"), slow);
    try {
      this.#list = (await this.owner.files.trash()).sort((a, b) => b.deleted.localeCompare(a.deleted));
      this.note.textContent = "";
    } catch (err) {
      this.#list = [];
      this.#fail(problemOf(err), () => this.start());
    } finally {
      clearTimeout(waits);
    }
    const there = new Set(this.#list.map((t) => t.id));
    this.#picked = new Set([...this.#picked].filter((id) => there.has(id)));
    this.#draw();
  }

  #fail(problem, again) {
    this.note.replaceChildren(h("span", { class: "fault" }, icon("warn"), problem.message), again && h("button", { class: "link", type: "button", click: again }, "Retry"));
  }

  #draw() {
    this.rows.replaceChildren(...this.#list.map((t) => this.#row(t)));
    if (!this.#list.length && !this.note.textContent) {
      this.rows.append(h("div", { class: "empty" }, icon("trash"), h("p", {}, "The trash is empty."), h("p", { class: "small quiet" }, "Deleted files come here and can be restored.")));
    }
    this.empty.hidden = !this.#list.length;
    this.#act();
  }

  #act() {
    this.restore.disabled = this.erase.disabled = !this.#picked.size;
    this.restore.parentElement.hidden = !this.#list.length;
  }

  #row(t) {
    const look = iconOf({ name: baseOf(t.path), type: t.type ?? "file" });
    const box = h("input", { type: "checkbox", "aria-label": plainName(baseOf(t.path)) });
    box.checked = this.#picked.has(t.id);
    box.addEventListener("change", () => {
      if (box.checked) this.#picked.add(t.id);
      else this.#picked.delete(t.id);
      this.#act();
    });
    const where = tidy(parentOf(t.path), this.owner.home, this.owner.whole);
    return h("label", { class: "trash-row", title: `${plainName(t.path)}\nDeleted ${fullTime(t.deleted)}` }, box,
      h("span", { class: `glyph${look.folder ? " folder" : ""}` }, icon(look.icon)),
      h("span", { class: "trash-name" }, nameElement(baseOf(t.path)), h("span", { class: "target" }, where)),
      h("span", { class: "trash-when" }, t.size && t.type === "file" ? `${size(t.size)} · ` : "", shortTime(t.deleted)));
  }

  #chosen() {
    return this.#list.filter((t) => this.#picked.has(t.id));
  }

  async #restore() {
    await this.#do(async () => {
      const chosen = this.#chosen();
      await this.owner.files.restore(chosen.map((t) => t.id));
      announce(`${count(chosen.length, "item")} restored`);
      this.owner.restored(chosen.map((t) => t.path));
    });
  }

  async #erase() {
    const chosen = this.#chosen();
    const what = chosen.length === 1 ? `“${plainName(baseOf(chosen[0].path))}”` : count(chosen.length, "item");
    if (await confirm({ title: `Delete ${what} permanently?`, text: "This cannot be undone.", act: "Delete permanently" })) {
      await this.#do(() => this.owner.files.emptyTrash(chosen.map((t) => t.id)));
    }
  }

  async #empty() {
    if (await confirm({ title: "Empty the trash?", text: `${count(this.#list.length, "item")} will be permanently deleted. This cannot be undone.`, act: "Empty trash" })) {
      await this.#do(() => this.owner.files.emptyTrash());
    }
  }

  async #do(act) {
    this.restore.disabled = this.erase.disabled = true;
    try {
      await act();
      await this.start();
    } catch (err) {
      await this.start();
      this.#fail(problemOf(err));
    }
  }
}
