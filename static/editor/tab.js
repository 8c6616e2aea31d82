// Tab is one open file: it is read, shown as text or as what it is, changed, and saved unless somebody else has changed
// it meanwhile. Unsaved work is kept as a draft until it is saved or thrown away.
import { Problem, problemOf } from "../files/api.js";
import { h, icon, later, say } from "../files/dom.js";
import { kindOf, previews, sources } from "../files/kinds.js";
import { plainName } from "../files/names.js";
import { baseOf, encodePath, parentOf } from "../files/paths.js";
import { moment, size } from "../files/words.js";
import { longest } from "./drafts.js";
import { preview, peek } from "./previews.js";
import { indentOf, read, whole, write } from "./text.js";

const large = 5 << 20; // bytes; of larger files the beginning is shown, and they are not changed here
const beginning = 1 << 20;
const slow = 150; // ms before it is said that something is under way
const draftPause = 400; // ms after the last key
const mostLinks = 10;

export class Tab {
  #notes = new Map();
  #view = null; // what is shown instead of the code: {element, end}
  #showing = 0;
  #draftKept = true;

  // owner: {files, drafts, home, wrap, changed(tab), moved(tab, where), reveal(path), open(path), quiet()}
  constructor(owner, path, pinned) {
    this.owner = owner;
    this.path = path;
    this.real = path;
    this.name = baseOf(path);
    this.kind = kindOf(plainName(this.name));
    this.pinned = pinned;
    this.state = "idle";
    this.mode = "source";
    this.dirty = false;
    this.readOnly = "";
    this.etag = "";
    this.notesElement = h("div", { class: "editor-notes" });
    this.place = h("div", { class: "editor-place" });
    this.cover = h("div", { class: "editor-cover", hidden: true });
    this.element = h("div", { class: "editor-host", role: "tabpanel", hidden: true }, this.notesElement, this.place, this.cover);
    this.draftSoon = later(() => this.keep(), draftPause);
  }

  get previewable() {
    return previews.has(this.kind);
  }

  // both says that there is text to change and something to look at.
  get both() {
    return Boolean(this.code) && sources.has(this.kind);
  }

  note(id, note) {
    if (note) this.#notes.set(id, note);
    else this.#notes.delete(id);
    this.notesElement.replaceChildren(...[...this.#notes.values()].map((n) => h("div", { class: `editor-note tone-${n.tone ?? "still"}`, role: n.tone === "bad" || n.tone === "busy" ? "alert" : "status" },
      icon(n.icon ?? "note"), h("span", { class: "editor-note-text" }, n.text),
      h("span", { class: "editor-note-acts" }, (n.acts ?? []).map((a) => h("button", { type: "button", class: `button low${a.primary ? " primary" : ""}`, click: a.act }, a.text))))));
  }

  // load reads the file. at: {line, column, bytes} to go to.
  async load(at = {}) {
    this.state = "loading";
    for (const id of ["failed", "grown"]) this.note(id, null);
    const waits = setTimeout(() => this.state === "loading" && !this.code && this.place.replaceChildren(skeleton()), slow);
    this.owner.changed(this);
    try {
      await this.#stat();
      if (previews.has(this.kind) && !sources.has(this.kind)) await this.#look();
      else await this.#read(at);
      this.state = "ready";
    } catch (err) {
      if (err.folder) return this.owner.dismiss(this);
      this.state = "error";
      this.#fail(problemOf(err));
    } finally {
      clearTimeout(waits);
      this.place.querySelector(".skeletons")?.remove();
    }
    this.owner.changed(this);
  }

  #fail(problem) {
    const again = problem.code !== "special" && h("button", { type: "button", class: "button", click: () => this.load() }, "Retry");
    this.place.replaceChildren(h("div", { class: "empty" }, icon("warn"), h("p", {}, problem.status === 404 ? "This file is not there (any more)." : problem.message), again));
  }

  // #stat finds out what the path leads to, through links.
  async #stat() {
    this.real = this.path;
    for (let i = 0; ; i++) {
      this.entry = await this.owner.files.stat(this.real);
      if (this.entry.type !== "link" || !this.entry.target || i === mostLinks) break;
      this.real = this.entry.target_encoded ? `/${this.entry.target_encoded}` : encodePath(this.entry.target, parentOf(this.real));
    }
    if (this.entry.type === "folder") {
      this.owner.reveal(this.path);
      throw Object.assign(new Error("This is a folder."), { folder: true });
    }
    if (this.entry.type !== "file") throw new Problem(0, "special", "This is neither a file nor a folder: there is nothing to show.");
  }

  async #read(at) {
    const huge = this.entry.size > large;
    const { bytes, etag, size: total, part } = await this.owner.files.read(this.real, huge ? { most: beginning } : {});
    this.etag = etag || this.entry.etag || "";
    const found = read(bytes, part);
    if (found.kind === "binary") return this.#show(peek(bytes, { size: total, download: () => this.owner.download(this) }), "preview");
    this.how = found.how;
    this.part = part;
    this.readOnly = part ? `Only the first ${size(beginning)} of ${size(total)} are shown, and cannot be changed here.` : this.#lock();
    this.note("locked", this.readOnly && { icon: "lock", text: this.readOnly, acts: part ? [{ text: "Download", act: () => this.owner.download(this) }] : [] });
    this.note("page", this.kind === "page" ? { text: "Pages from a sandbox do not run here. To see this one, serve its folder in the sandbox, for example with “python3 -m http.server 8000”, and open port 8000." } : null);
    const text = part ? whole(found.text) : found.text;
    await this.#edit(text);
    if (!this.readOnly) await this.#restore(text);
    if (sources.has(this.kind) && !at.line && !this.dirty && this.owner.likes(this.kind) === "preview") await this.turn("preview");
    if (at.line) this.code.goTo(at);
  }

  // #lock says why the file cannot be changed, or "".
  #lock() {
    if (this.how.encoding !== "UTF-8") return this.how.encoding === "not UTF-8" ? "This text is not UTF-8. It is shown as well as it can be, and cannot be changed here." : `This text is ${this.how.encoding}, and cannot be changed here.`;
    const mode = parseInt(this.entry.mode, 8) || 0;
    const mine = this.owner.user;
    if (!mine || mine === "root") return "";
    const writes = this.entry.owner === mine ? mode & 0o200 : mode & 0o022;
    return writes ? "" : `Read-only: ${this.entry.owner === mine ? "its permissions do not let it be written" : `it belongs to ${this.entry.owner}`}.`;
  }

  async #edit(text) {
    const { Code } = await import("./code.js");
    this.code?.end();
    this.code = null;
    this.place.replaceChildren();
    this.indent = indentOf(text, /\.(go|mk)$|^makefile$/i.test(plainName(this.name)) ? "\t" : /\.(py|rs|java|c|cc|cpp|h|cs|php|kt|swift)$/i.test(plainName(this.name)) ? "    " : "  ");
    this.code = new Code({
      parent: this.place, name: plainName(this.name), text, eol: this.how.eol, indent: this.indent, wrap: this.owner.wrap, readOnly: Boolean(this.readOnly),
      changed: (dirty) => this.#changed(dirty), moved: (where) => this.owner.moved(this, where),
    });
    this.dirty = false;
  }

  #changed(dirty) {
    const turned = dirty !== this.dirty;
    this.dirty = dirty;
    if (dirty) this.pinned = true;
    if (dirty) {
      this.#draftKept = false;
      this.draftSoon();
    } else if (turned) this.#forget();
    if (turned) this.owner.changed(this);
  }

  // Drafts.
  async keep() {
    this.draftSoon.cancel();
    if (!this.dirty || !this.code) return;
    const text = this.code.text;
    this.#draftKept = await this.owner.drafts.put(this.path, { text, etag: this.etag, how: this.how });
    this.note("draft", this.#draftKept ? null : { tone: "busy", icon: "warn", text: text.length > longest ? "This is too much to be kept over a reload. Save it." : "This browser does not keep unsaved work over a reload. Save it." });
  }

  get atRisk() {
    return this.dirty && !this.#draftKept;
  }

  #forget() {
    this.draftSoon.cancel();
    this.#draftKept = true;
    this.note("draft", null);
    return this.owner.drafts.drop(this.path);
  }

  // forget throws unsaved work away.
  forget() {
    return this.#forget();
  }

  async #restore(text) {
    const draft = await this.owner.drafts.get(this.path);
    if (!draft) return;
    if (draft.text === text) return this.owner.drafts.drop(this.path);
    const now = this.etag;
    this.code.replace(draft.text, false);
    if (draft.etag === now) {
      this.note("restored", { text: `Your unsaved work (${moment(new Date(draft.at).toISOString())}) was restored.`, acts: [{ text: "Throw it away", act: () => this.#revert(text) }, { text: "OK", act: () => this.note("restored", null) }] });
    } else {
      this.etag = draft.etag;
      this.#conflict({ text, etag: now, how: this.how }, "Your unsaved work was restored, but the file has changed on the disk since.");
    }
    say("Unsaved work restored");
  }

  #revert(text) {
    this.note("restored", null);
    this.code.replace(text);
    this.code.focus();
  }

  // save writes the file, if it is still the one that was read.
  async save() {
    if (!this.code || this.readOnly || this.saving || this.state !== "ready") return false;
    if (this.comparing) return this.#saveAs(this.comparing.view.text, this.theirs.etag);
    return this.#saveAs(this.code.text, this.etag);
  }

  async #saveAs(text, etag) {
    this.saving = true;
    this.owner.changed(this);
    try {
      const entry = await this.owner.files.write(this.real, write(text, this.how), etag ? { ifMatch: etag } : { fresh: true, parents: true });
      this.etag = entry.etag;
      this.entry = { ...this.entry, ...entry };
      this.#settled(text);
      return true;
    } catch (err) {
      await this.#refused(problemOf(err));
      return false;
    } finally {
      this.saving = false;
      this.owner.changed(this);
    }
  }

  // #settled is the state after text has reached the disk, or has come from it.
  #settled(text) {
    this.#uncompare();
    this.gone = false;
    if (this.code.text !== text && this.theirs) this.code.replace(text, false);
    this.theirs = null;
    this.code.settle(text);
    for (const id of ["failed", "conflict", "gone", "restored"]) this.note(id, null);
    say(`${plainName(this.name)} saved`);
  }

  async #refused(problem) {
    if (problem.status === 412 || problem.status === 409) {
      try {
        return await this.#changedMeanwhile(true);
      } catch (err) {
        problem = problemOf(err);
      }
    }
    this.note("failed", { tone: "bad", icon: "warn", text: `Not saved: ${problem.message} What you wrote is kept in this browser.`, acts: [{ text: "Retry", act: () => this.save() }] });
  }

  // #changedMeanwhile looks at what is on the disk now. Saving has just been refused when wanted.
  async #changedMeanwhile(wanted) {
    let now;
    try {
      now = await this.owner.files.read(this.real, {});
    } catch (err) {
      if (problemOf(err).status !== 404) throw err;
      return this.#gone();
    }
    const found = read(now.bytes);
    if (found.kind === "binary") {
      return this.note("conflict", { tone: "bad", icon: "warn", text: "On the disk this file is no text any more.", acts: [{ text: "Replace it with mine", act: () => this.#saveAs(this.code.text, now.etag) }, { text: "Take theirs", act: () => this.reload() }] });
    }
    if (found.text === this.code.text) {
      this.etag = now.etag;
      this.how = found.how;
      return this.#settled(found.text);
    }
    this.#conflict({ text: found.text, etag: now.etag, how: found.how }, "This file has changed on the disk while you were changing it.");
    if (wanted) await this.compare();
  }

  #gone() {
    this.gone = true;
    this.etag = "";
    this.note("gone", { tone: "busy", icon: "warn", text: this.dirty ? "This file was deleted on the disk. What you have here is not saved." : "This file was deleted on the disk.", acts: this.readOnly ? [] : [{ text: "Save it again", act: () => this.save() }] });
    this.owner.changed(this);
  }

  #conflict(theirs, text) {
    this.theirs = theirs;
    this.note("conflict", {
      tone: "busy", icon: "warn", text,
      acts: [
        !this.comparing && { text: "Compare", act: () => this.compare() },
        this.comparing && { text: "Save this", primary: true, act: () => this.save() },
        { text: "Keep mine", act: () => this.#saveAs(this.code.text, this.theirs.etag) },
        { text: "Take theirs", act: () => this.#take() },
      ].filter(Boolean),
    });
    say(text);
  }

  #take() {
    const { text, etag, how } = this.theirs;
    this.etag = etag;
    this.how = how;
    this.code.replace(text, false);
    this.#settled(text);
    this.code.focus();
  }

  // compare shows theirs and mine, which can be merged by hand and saved.
  async compare() {
    const { Compare } = await import("./compare.js");
    if (this.mode === "preview") await this.turn("source");
    this.cover.replaceChildren();
    this.cover.hidden = false;
    const place = h("div", { class: "compare" });
    this.cover.append(place);
    const view = new Compare({ parent: place, theirs: this.theirs.text, mine: this.code.text, eol: this.how.eol });
    if (view.beside) place.before(h("div", { class: "compare-heads" }, h("span", {}, "On the disk"), h("span", {}, "Yours")));
    this.comparing = { view };
    this.#conflict(this.theirs, view.beside ? "On the left is what is on the disk now, on the right yours. Make it right and save it." : "Red lines are on the disk now, green ones are yours. Make it right and save it.");
    this.comparing.view.focus();
  }

  #uncompare() {
    this.comparing?.view.end();
    this.comparing = null;
    this.cover.hidden = true;
    this.cover.replaceChildren();
  }

  // refresh looks whether the file has changed on the disk: what has no unsaved work is read again.
  async refresh() {
    if (this.state !== "ready" || this.saving) return;
    let now;
    try {
      now = await this.owner.files.stat(this.real, { quiet: true });
    } catch (err) {
      if (problemOf(err).status === 404 && !this.gone) this.#gone();
      return;
    }
    const back = this.gone;
    this.gone = false;
    if (back) this.note("gone", null);
    if (now.etag === (this.theirs?.etag ?? this.etag) && !back) return;
    if (this.saving) return;
    if (this.part) return this.note("grown", { text: "It has changed on the disk.", acts: [{ text: "Read it again", act: () => this.load() }] });
    if (!this.dirty) return this.reload();
    await this.#changedMeanwhile(false).catch(() => {}); // the next change, or saving, tells
  }

  // reload reads the file again and leaves the cursor where it was.
  async reload() {
    this.#uncompare();
    this.theirs = null;
    if (!this.code || this.readOnly) return this.load();
    const now = await this.owner.files.read(this.real, {}).catch(() => null);
    if (!now || this.dirty) return;
    const found = read(now.bytes);
    if (found.kind !== "text" || found.how.eol !== this.how.eol || now.size > large) return this.load();
    this.etag = now.etag;
    this.how = found.how;
    this.note("conflict", null);
    this.code.replace(found.text);
    if (this.mode === "preview") await this.turn("preview");
  }

  // turn shows the source, or what it looks like.
  async turn(mode) {
    const showing = ++this.#showing;
    this.mode = mode;
    if (mode === "source") this.#unshow();
    else {
      const waits = setTimeout(() => this.#view || this.#cover(skeleton()), slow);
      const view = await this.#render().catch((err) => failure(err));
      clearTimeout(waits);
      if (showing !== this.#showing) return view.end?.();
      this.#unshow();
      this.#show(view, "preview");
    }
    this.owner.changed(this);
  }

  #render() {
    const title = plainName(this.name);
    return preview(this.kind, { title, files: this.owner.files, path: this.real, tag: this.etag || this.entry.etag || "", text: this.code?.text, failed: () => this.#unshowable() });
  }

  // #look shows what is no text.
  async #look() {
    this.etag = this.entry.etag ?? "";
    this.#show(await this.#render(), "preview");
  }

  #unshowable() {
    this.#unshow();
    this.#show(failure(new Error("The browser cannot show this file."), () => this.owner.download(this)), "preview");
  }

  #show(view, mode) {
    this.#unshow();
    this.#view = view;
    this.mode = mode;
    this.#cover(view.element);
    view.shown?.();
    this.owner.changed(this);
  }

  #cover(element) {
    this.cover.replaceChildren(element);
    this.cover.hidden = false;
    this.place.hidden = true;
  }

  #unshow() {
    this.#view?.end?.();
    this.#view = null;
    this.place.hidden = false;
    if (!this.comparing) {
      this.cover.hidden = true;
      this.cover.replaceChildren();
    }
  }

  get view() {
    return this.#view;
  }

  focus() {
    if (this.mode === "source" && this.code) (this.comparing?.view ?? this.code).focus();
    else this.cover.firstElementChild?.focus({ preventScroll: true });
  }

  async goTo(at) {
    if (!this.code) return;
    if (this.mode === "preview") await this.turn("source");
    this.code.goTo(at);
  }

  end() {
    this.draftSoon.cancel();
    this.#unshow();
    this.#uncompare();
    this.code?.end();
    this.element.remove();
  }
}

function failure(err, download) {
  return { element: h("div", { class: "empty" }, icon("warn"), h("p", {}, `It cannot be shown: ${problemOf(err).message}`), download && h("button", { type: "button", class: "button", click: download }, icon("download"), "Download")) };
}

function skeleton() {
  return h("div", { class: "skeletons", "aria-label": "Loading…", role: "status" }, [62, 44, 71, 38, 55, 66, 29].map((w) => {
    const line = h("span", { class: "skeleton" });
    line.style.width = `${w}%`;
    return line;
  }));
}
