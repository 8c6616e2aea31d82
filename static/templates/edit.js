// <template-editor>: the files of a template in an editor. They are checked while they are typed, and saved together.
import { Code } from "../editor/code.js";
import { ask, confirm } from "../files/dialog.js";
import { Files, problemOf } from "../files/api.js";
import { announce } from "../js/announce.js";
import { button, command, h, icon } from "../js/dom.js";
import { pageSignal } from "../js/page_lifecycle.js";
import { Draft, fixed, wrongPath } from "./draft.js";

const pause = 350; // ms without typing before a check
const patience = 30_000; // ms

class TemplateEditor extends HTMLElement {
  #draft = new Draft();
  #codes = new Map(); // path → {code, place}
  #problems = [];
  #timer = 0;
  #check = null; // AbortController of the check under way
  #theirs = null; // the stored files, when others have changed them
  #compare = null;
  #busy = false;
  #path = "";

  connectedCallback() {
    this.name = this.dataset.name;
    this.writable = this.dataset.writable === "true";
    this.api = new Files(`/templates/${this.name}`);
    for (const part of ["tabs", "text", "problems", "notes", "save", "stand"]) this[part] = this.querySelector(`[data-${part}]`);
    this.save?.addEventListener("click", () => this.#save());
    this.addEventListener("keydown", (event) => {
      if (!command(event) || event.key.toLowerCase() !== "s" || !this.writable) return;
      event.preventDefault();
      this.#save();
    });
    this.addEventListener("submit", (event) => this.#build(event), { capture: true });
    addEventListener("beforeunload", (event) => this.#draft.dirty && event.preventDefault(), { signal: pageSignal() });
    this.#load();
  }

  async #load() {
    try {
      this.#take(await this.#stored());
    } catch (err) {
      this.#note("bad", problemOf(err).message, [{ text: "Try again", act: () => this.#load() }]);
    }
  }

  #stored() {
    return this.api.json(`/templates/${this.name}/files`, { cache: "no-store", limit: patience });
  }

  // #take shows the files as they are stored.
  #take(files) {
    this.#draft.take(files);
    for (const path of [...this.#codes.keys()]) this.#drop(path);
    this.#note();
    this.#open(this.#draft.paths.includes(this.#path) ? this.#path : this.#draft.paths[0]);
    this.#plan(0);
  }

  #drop(path) {
    const { code, place } = this.#codes.get(path);
    code?.end();
    place.remove();
    this.#codes.delete(path);
  }

  // #open shows a file, and returns its editor; null for what is not text.
  #open(path) {
    this.#endCompare();
    this.#path = path;
    if (!this.#codes.has(path)) this.#codes.set(path, this.#show(path));
    for (const [other, { place }] of this.#codes) place.hidden = other !== path;
    this.#mark();
    this.#draw();
    return this.#codes.get(path).code;
  }

  #show(path) {
    const text = this.#draft.text(path);
    const place = h("div", { class: "template-place", role: "tabpanel", "aria-label": path });
    this.text.append(place);
    if (text === null) {
      place.append(h("p", { class: "card-pad quiet small" }, "This file is not text, or too large to be shown. It stays as it is."));
      return { code: null, place };
    }
    const name = path.split("/").pop();
    const code = new Code({
      parent: place, name, text, eol: text.includes("\r") ? "mixed" : "\n", indent: "  ", wrap: false, readOnly: !this.writable, marks: true, moved: () => {},
      changed: () => this.#changed(path, code),
    });
    return { code, place };
  }

  #changed(path, code) {
    if (!code || this.#codes.get(path)?.code !== code) return; // it is being made, or is over
    this.#draft.set(path, code.text);
    this.#draw();
    this.#plan(pause);
  }

  // #plan has the draft checked after a pause.
  #plan(after) {
    clearTimeout(this.#timer);
    if (this.writable) this.#timer = setTimeout(() => this.#look(), after);
  }

  async #look() {
    this.#check?.abort();
    const mine = (this.#check = new AbortController());
    try {
      const found = await this.#send("/templates/check", "POST", { name: this.name, files: Object.fromEntries(this.#draft.files) }, {}, mine.signal);
      if (this.#check !== mine) return;
      this.#problems = (await found.json()).problems;
    } catch (err) {
      const problem = problemOf(err);
      if (this.#check !== mine || problem.code === "left") return;
      this.#problems = problem.field === "files" ? [{ file: "", line: 0, message: problem.message }] : this.#problems; // else the next check will tell
    }
    this.#mark();
    this.#draw();
  }

  #send(url, method, body, headers, signal) {
    return this.api.ask(url, { method, body: JSON.stringify(body), headers: { "Content-Type": "application/json", ...headers }, signal, limit: patience });
  }

  #mark() {
    for (const [path, { code }] of this.#codes) code?.mark(this.#problems.filter((p) => p.file === path));
  }

  // #draw shows the tabs, the problems and what Save would do.
  #draw() {
    const broken = new Set(this.#problems.map((p) => p.file));
    const tabs = this.#draft.paths.map((path) =>
      h("button", { type: "button", role: "tab", class: "template-tab", "aria-selected": String(path === this.#path), "data-file": path, click: () => this.#open(path)?.focus() },
        path, broken.has(path) && h("span", { class: "tone-bad", title: "It has problems" }, icon("warn")), this.#draft.isDirty(path) && h("span", { class: "dirty", title: "Not saved" }, "•")));
    const focused = this.tabs.contains(document.activeElement) ? document.activeElement.dataset.file : null;
    this.tabs.replaceChildren(h("div", { role: "tablist", "aria-label": "Files" }, tabs), ...(this.writable ? this.#acts() : []));
    if (focused) this.tabs.querySelector(`[data-file="${CSS.escape(focused)}"]`)?.focus();
    this.problems.hidden = this.#problems.length === 0;
    this.problems.replaceChildren(...this.#problems.map((p) => this.#problem(p)));
    if (!this.writable) return;
    const { dirty } = this.#draft;
    const n = this.#problems.length;
    this.save.disabled = !dirty || this.#busy;
    this.stand.textContent = this.#busy ? "Saving…" : n ? `${n} problem${n > 1 ? "s" : ""}` : dirty ? "Not saved" : "Saved";
  }

  #acts() {
    return [
      button("plus", "Add a file", () => this.#add(), { kind: "bare low template-add" }),
      !fixed(this.#path) && button("trash", `Delete ${this.#path}`, () => this.#delete(this.#path), { kind: "bare low template-delete" }),
    ].filter(Boolean);
  }

  #problem({ file, line, message }) {
    const where = file ? `${file}${line ? `:${line}` : ""}` : "Files";
    const show = () => {
      const code = this.#draft.paths.includes(file) ? this.#open(file) : null;
      code?.goTo({ line: Math.max(1, line) });
      code?.focus();
    };
    return h("li", {}, h("button", { type: "button", class: "template-problem", click: show }, icon("warn"), h("span", { class: "where" }, where), h("span", {}, message)));
  }

  async #add() {
    const input = h("input", { class: "input mono", placeholder: "files/setup.sh", "aria-label": "Path", spellcheck: "false", autocomplete: "off" });
    const wrong = h("p", { class: "fault", hidden: true });
    for (;;) {
      const body = h("div", { class: "form" }, input, wrong);
      if ((await ask({ title: "Add a file", body, buttons: [{ value: "", text: "Cancel" }, { value: "add", text: "Add", kind: "primary", usual: true }] })) !== "add") return;
      const why = wrongPath(input.value.trim(), this.#draft.paths);
      if (!why) break;
      wrong.textContent = why;
      wrong.hidden = false;
    }
    const path = input.value.trim();
    this.#draft.set(path, "");
    this.#open(path)?.focus();
    this.#plan(0);
  }

  async #delete(path) {
    if (!(await confirm({ title: `Delete ${path}?`, text: "It is gone once you save.", act: "Delete" }))) return;
    this.#drop(path);
    this.#draft.delete(path);
    this.#open(this.#draft.paths[0]);
    this.#plan(0);
  }

  // #save stores all files. over is the version that it may replace; ours if it is left out.
  async #save(over = this.#draft.etag) {
    this.#endCompare();
    if (this.#busy || !this.#draft.dirty) return !this.#draft.dirty;
    const sent = this.#draft.files;
    this.#busy = true;
    this.#draw();
    try {
      const answer = await this.#send(`/templates/${this.name}/edit`, "PUT", { files: Object.fromEntries(sent) }, { "If-Match": over });
      const texts = new Map([...sent].map(([path, text]) => [path, text]));
      this.#draft.stored((await answer.json()).etag, texts);
      this.#theirs = null;
      this.#note();
      announce("Saved.");
      return true;
    } catch (err) {
      await this.#unsaved(problemOf(err));
      return false;
    } finally {
      this.#busy = false;
      this.#draw();
    }
  }

  async #unsaved(problem) {
    if (problem.status !== 412) {
      this.#note("bad", `Not saved. ${problem.message}`);
      return;
    }
    try {
      this.#theirs = await this.#stored();
    } catch (err) {
      this.#note("bad", `Not saved. ${problemOf(err).message}`);
      return;
    }
    this.#note("busy", "Another user has saved this template since you opened it. Your text is still here, and theirs is stored.", [
      { text: "Compare", act: () => this.#showCompare() },
      { text: "Overwrite with mine", act: () => this.#overwrite() },
      { text: "Use theirs", act: () => this.#take(this.#theirs) },
    ]);
  }

  // #overwrite saves ours over theirs. Files that only they have are deleted, and those that only we have left alone must be sent.
  #overwrite() {
    const { etag, files } = this.#theirs;
    const theirs = new Map(files.map(({ path, text }) => [path, text]));
    const ours = new Map(this.#draft.paths.map((path) => [path, this.#draft.text(path)]));
    this.#draft.stored(etag, theirs);
    for (const [path, text] of ours) this.#draft.set(path, text);
    return this.#save(etag);
  }

  // #showCompare shows theirs and ours of the open file. What is merged there is ours.
  async #showCompare() {
    const { Compare } = await import("../editor/compare.js");
    this.#endCompare();
    const path = this.#path;
    const { code } = this.#codes.get(path) ?? {};
    if (!code || !this.#theirs) return;
    const place = h("div", { class: "template-place compare" });
    this.text.append(place);
    this.#codes.get(path).place.hidden = true;
    const theirs = this.#theirs.files.find((f) => f.path === path)?.text ?? "";
    const view = new Compare({ parent: place, theirs, mine: code.text, eol: "\n", changed: () => {} });
    this.#compare = { view, place, path };
    view.focus();
  }

  #endCompare() {
    if (!this.#compare) return;
    const { view, place, path } = this.#compare;
    this.#compare = null;
    const { code, place: own } = this.#codes.get(path) ?? {};
    if (code && view.text !== code.text) code.replace(view.text, false);
    if (own) own.hidden = path !== this.#path;
    view.end();
    place.remove();
  }

  // #build saves first what is not saved, and stays on this page.
  async #build(event) {
    const form = event.target;
    if (!form.action.endsWith(`/templates/${this.name}/build`)) return;
    form.querySelector("[name=next]").value = location.pathname;
    if (!this.#draft.dirty) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (await this.#save()) this.querySelector(`form[action$="/templates/${this.name}/build"]`)?.requestSubmit();
  }

  // #note shows a message above the files, or none.
  #note(tone, text, acts = []) {
    if (!text) return this.notes.replaceChildren();
    announce(text);
    this.notes.replaceChildren(h("div", { class: `notice tone-${tone}`, role: "alert" }, icon("warn"), h("div", { class: "notice-body" }, text),
      acts.length > 0 && h("div", { class: "buttons" }, acts.map(({ text, act }) => h("button", { type: "button", class: "button low", click: act }, text)))));
  }
}

customElements.define("template-editor", TemplateEditor);
