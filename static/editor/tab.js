// Tab is one open file: it is loaded, shown as text or as a preview, edited, and saved unless it has changed on the disk.
// Unsaved work is kept as a draft.
import { Problem, problemOf } from "../files/api.js";
import { announce } from "../js/announce.js";
import { h, icon } from "../js/dom.js";
import { debounce } from "../js/timers.js";
import { kindOf, previews, sources } from "../files/kinds.js";
import { plainName } from "../files/names.js";
import { baseOf, encodePath, parentOf } from "../files/paths.js";
import { shortTime, size } from "../files/format.js";
import { Conflict } from "./conflict.js";
import { maxLength } from "./drafts.js";
import { howOf, draftNote } from "./draft_note.js";
import { drawNotes } from "./notes.js";
import { failure, skeleton } from "./placeholders.js";
import { preview, peek } from "./previews.js";
import { indentOf, read, completeLines, write } from "./text.js";

const large = 5 << 20; // bytes; of larger files only the beginning is shown, read-only
const beginning = 1 << 20;
const slow = 150; // ms before loading is shown
const draftPause = 400; // ms after the last key
const mostLinks = 10;
const parts = { code: () => import("./code.js"), compare: () => import("./compare.js") }; // large modules

export class Tab {
  #notes = new Map();
  #view = null; // shown instead of the code: {element, end}
  #showing = 0;
  #draftKept = true;
  #changes = 0;

  // owner: {files, drafts, home, wrap, changed(tab), moved(tab, where), reveal(path), open(path), rendering(path), rendered(path), …}
  constructor(owner, path, pinned, load = parts) {
    this.owner = owner;
    this.parts = load;
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
    this.entry = {};
    this.conflict = new Conflict(this, load.compare);
    this.notesElement = h("div", { class: "editor-notes" });
    this.place = h("div", { class: "editor-place" });
    this.cover = h("div", { class: "editor-cover", hidden: true });
    this.element = h("div", { class: "editor-host", role: "tabpanel", hidden: true }, this.notesElement, this.place, this.cover);
    this.draftSoon = debounce(() => this.keep(), draftPause);
  }

  // both says whether the file has both a source and a preview.
  get both() {
    return Boolean(this.code) && sources.has(this.kind);
  }

  note(id, note) {
    if (note) this.#notes.set(id, note);
    else this.#notes.delete(id);
    if (drawNotes(this.notesElement, this.#notes)) this.focus();
  }

  // askBeforeRendering is for a file whose preview may have crashed the last page.
  askBeforeRendering() {
    this.note("held", {
      tone: "busy", icon: "warn", text: "The page closed unexpectedly while rendering this file.",
      acts: [sources.has(this.kind) && { text: "Show source", act: () => this.load({ source: true }) }, { text: "Show", act: () => this.load() }].filter(Boolean),
    });
  }

  // load reads the file; await loading to join a load in progress. at: {line, column, bytes, match} to go to; source: do not render
  // a preview.
  load(at = {}) {
    this.loading = this.#load(at);
    return this.loading;
  }

  async #load(at) {
    this.state = "loading";
    this.code?.setReadOnly(true); // typed text would be lost
    for (const id of ["failed", "grown", "left", "held"]) this.note(id, null);
    const waits = setTimeout(() => this.state === "loading" && !this.code && this.place.replaceChildren(skeleton()), slow);
    this.owner.changed(this);
    try {
      await this.#stat();
      if (previews.has(this.kind) && !sources.has(this.kind)) await this.#showPreview();
      else await this.#read(at);
      this.state = "ready";
    } catch (err) {
      const problem = problemOf(err);
      const draft = problem.status === 404 || problem.code === "special" ? await this.owner.drafts.get(this.path) : null;
      if (err.folder && !draft) return this.owner.dismiss(this);
      if (draft && problem.status === 404) await this.#showDeleted(draft);
      else {
        this.#fail(problem);
        if (draft) this.note("left", draftNote(this, draft));
      }
    } finally {
      clearTimeout(waits);
      this.place.querySelector(".skeletons")?.remove();
    }
    this.owner.changed(this);
  }

  #fail(problem) {
    this.state = "error";
    this.temporary = problem.passing; // a retry may succeed
    this.#removeEditor();
    if (!problem.passing || problem.code === "special") this.dirty = false;
    const again = problem.code !== "special" && h("button", { type: "button", class: "button", click: () => this.load() }, "Retry");
    this.place.replaceChildren(h("div", { class: "empty" }, icon("warn"), h("p", {}, problem.status === 404 ? "This file does not exist." : problem.message), again));
  }

  // #stat resolves links.
  async #stat() {
    this.real = this.path;
    for (let i = 0; ; i++) {
      this.entry = await this.owner.files.stat(this.real);
      if (this.entry.type !== "link" || !this.entry.target || i === mostLinks) break;
      this.real = this.entry.target_encoded ? `/${this.entry.target_encoded}` : encodePath(this.entry.target, parentOf(this.real));
    }
    if (this.entry.type === "folder") {
      this.owner.reveal(this.path);
      throw Object.assign(new Problem(0, "special", "This is a folder."), { folder: true });
    }
    if (this.entry.type !== "file") throw new Problem(0, "special", "This is a special file, which cannot be shown.");
  }

  async #read(at) {
    const work = this.owner.drafts.get(this.path); // in parallel, so that the text is complete once it is editable
    const { bytes: all, etag, size: total, part } = await this.owner.files.read(this.real, this.entry.size > large ? { most: beginning, long: true } : { most: large + 1 });
    const draft = await work;
    const bytes = part ? all.subarray(0, beginning) : all;
    this.etag = etag || this.entry.etag || "";
    const found = read(bytes, part);
    if (found.kind === "binary") {
      this.#removeEditor();
      this.dirty = false;
      this.#show(peek(bytes, { size: total, download: () => this.owner.download(this) }), "preview");
      return this.#offerDraft(draft);
    }
    this.how = found.how;
    this.part = part;
    this.readOnly = part ? `Only the first ${size(bytes.length)} of ${size(total)} are shown, read-only.` : this.#lock();
    this.note("locked", this.readOnly && { icon: "lock", text: this.readOnly, acts: part ? [{ text: "Download", act: () => this.owner.download(this) }] : [] });
    this.note("page", this.kind === "page" ? { text: "HTML pages are not rendered here. To view this one, serve its folder in the sandbox, for example with “python3 -m http.server 8000”, and open port 8000." } : null);
    const text = part ? completeLines(found.text) : found.text;
    await this.#edit(text);
    if (draft && this.readOnly) this.#offerDraft(draft, text);
    else if (draft) this.#restore(draft, text);
    const empty = !text && this.mode === "source"; // there is nothing to preview, and the user wants to type
    if (sources.has(this.kind) && !empty && !at.line && !at.source && !this.dirty && this.owner.likes(this.kind) === "preview") await this.setMode("preview");
    if (at.line) this.code.goTo(at);
  }

  // #lock says why the file is read-only, or "".
  #lock() {
    if (this.how.encoding !== "UTF-8") return this.how.encoding === "not UTF-8" ? "Read-only: this text is not UTF-8, and some characters may be shown wrongly." : `Read-only: this text is ${this.how.encoding}.`;
    const mode = parseInt(this.entry.mode, 8) || 0;
    const mine = this.owner.user;
    if (!mine || mine === "root") return "";
    const writes = this.entry.owner === mine ? mode & 0o200 : mode & 0o022;
    return writes ? "" : `Read-only: ${this.entry.owner === mine ? "its permissions do not let it be written" : `it belongs to ${this.entry.owner}`}.`;
  }

  #removeEditor() {
    this.code?.end();
    this.code = null;
    this.place.replaceChildren();
  }

  async #edit(text, saved = text) {
    const { Code } = await this.parts.code();
    this.#removeEditor();
    this.indent = indentOf(text, /\.(go|mk)$|^makefile$/i.test(plainName(this.name)) ? "\t" : /\.(py|rs|java|c|cc|cpp|h|cs|php|kt|swift)$/i.test(plainName(this.name)) ? "    " : "  ");
    this.code = new Code({
      parent: this.place, name: plainName(this.name), text: saved, eol: this.how.eol, indent: this.indent, wrap: this.owner.wrap, readOnly: Boolean(this.readOnly),
      changed: (dirty) => this.#changed(dirty), moved: (where) => this.owner.moved(this, where),
    });
    this.dirty = false;
    if (text !== saved) this.code.replace(text, false);
  }

  // #showDeleted shows the draft of a deleted file.
  async #showDeleted(draft) {
    this.how = howOf(draft);
    this.readOnly = "";
    this.part = false;
    await this.#edit(draft.text, "");
    this.state = "ready";
    this.#gone();
  }

  // #offerDraft shows a note about a draft that cannot be applied. text is what the file has.
  #offerDraft(draft, text) {
    if (draft?.text === text && !this.part) this.owner.drafts.drop(this.path);
    else this.note("left", draft && draftNote(this, draft));
  }

  // mergeChanged is called when the user edits a merge.
  mergeChanged() {
    this.#changed(true);
  }

  #changed(dirty) {
    const turned = dirty !== this.dirty;
    this.dirty = dirty;
    this.#changes++;
    if (dirty) this.pinned = true;
    if (dirty) {
      this.#draftKept = false;
      this.draftSoon();
    } else if (turned) this.forget();
    if (turned) this.owner.changed(this);
  }

  // keep saves a draft.
  async keep() {
    if (!this.dirty || !this.code || this.readOnly) return;
    this.conflict.collectMerge();
    this.draftSoon.cancel(); // collecting the merge has started it again
    if (!this.dirty) return;
    const text = this.code.text;
    const upTo = this.#changes;
    const kept = await this.owner.drafts.put(this.path, { text, etag: this.etag, how: this.how });
    if (!this.dirty || upTo !== this.#changes) return;
    this.#draftKept = kept;
    this.note("draft", kept ? null : { tone: "busy", icon: "warn", text: text.length > maxLength ? "This text is too long to survive a reload. Save it." : "Unsaved work will not survive a reload in this browser. Save it." });
  }

  get atRisk() {
    return this.dirty && !this.#draftKept;
  }

  // forget deletes the draft.
  forget() {
    this.draftSoon.cancel();
    this.#draftKept = true;
    this.note("draft", null);
    return this.owner.drafts.drop(this.path);
  }

  async #restore(draft, text) {
    if (draft.text === text) return this.owner.drafts.drop(this.path);
    const now = this.etag;
    this.code.replace(draft.text, false);
    if (draft.etag === now) {
      this.note("restored", { text: `Your unsaved work (${shortTime(new Date(draft.at).toISOString())}) was restored.`, acts: [{ text: "Discard", act: () => this.#discardDraft(text) }, { text: "OK", act: () => this.note("restored", null) }] });
    } else {
      this.etag = draft.etag;
      await this.conflict.show({ text, etag: now, how: this.how }, "Your unsaved work was restored, but the file has since changed on disk.");
    }
    announce("Unsaved work restored");
  }

  #discardDraft(text) {
    this.conflict.closeComparison();
    this.note("restored", null);
    this.code.replace(text);
    this.code.focus();
  }

  get comparing() {
    return this.conflict.comparing;
  }

  // mine returns the current text, with an edited merge.
  get mine() {
    this.conflict.collectMerge();
    return this.code.text;
  }

  // save saves over the version that was loaded, or that the comparison shows.
  async save() {
    if (!this.code || this.readOnly || this.state !== "ready") return false;
    return this.write(this.mine, this.comparing?.etag ?? this.etag);
  }

  // write saves a text over the version with this ETag; "" means a new file.
  async write(text, etag) {
    if (this.saving) return false;
    this.saving = true;
    this.owner.changed(this);
    try {
      const entry = await this.owner.files.write(this.real, write(text, this.how), etag ? { ifMatch: etag } : { fresh: true, parents: true });
      this.etag = entry.etag;
      this.entry = { ...this.entry, ...entry };
      this.#saved(text);
      return true;
    } catch (err) {
      await this.#refused(problemOf(err));
      return false;
    } finally {
      this.saving = false;
      this.owner.changed(this);
    }
  }

  // #saved updates the state after text was saved or loaded. Text typed meanwhile stays unsaved.
  #saved(text) {
    this.conflict.clear();
    this.gone = false;
    this.code.markSaved(text);
    for (const id of ["failed", "gone", "restored"]) this.note(id, null);
    announce(`${plainName(this.name)} saved`);
  }

  async #refused(problem) {
    if ([404, 409, 412].includes(problem.status)) {
      try {
        return await this.#changedMeanwhile(true);
      } catch (err) {
        problem = problemOf(err);
      }
    }
    this.note("failed", { tone: "bad", icon: "warn", text: `Not saved: ${problem.message} Your work is kept in this browser.`, acts: [{ text: "Retry", act: () => this.save() }] });
  }

  // #changedMeanwhile compares with the version on the disk. wanted says whether the user tried to save.
  async #changedMeanwhile(wanted) {
    let now;
    try {
      now = await this.owner.files.read(this.real, { most: large + 1 });
    } catch (err) {
      if (problemOf(err).status !== 404) throw err;
      return this.#gone();
    }
    if (now.part) return this.conflict.block(now.etag, "The version on disk is too large to compare.");
    const found = read(now.bytes);
    if (found.kind === "binary") return this.conflict.block(now.etag, "The version on disk is a binary file.");
    if (found.text === this.mine) {
      this.etag = now.etag;
      this.how = found.how;
      return this.#saved(found.text);
    }
    await this.conflict.show({ text: found.text, etag: now.etag, how: found.how }, "This file has changed on disk while you were editing it.", wanted);
  }

  #gone() {
    this.conflict.clear();
    this.gone = true;
    this.etag = "";
    this.note("gone", { tone: "busy", icon: "warn", text: this.dirty ? "This file was deleted on disk. Your version is not saved." : "This file was deleted on disk.", acts: this.readOnly ? [] : [{ text: "Save again", act: () => this.save() }] });
    this.owner.changed(this);
  }

  // acceptTheirs replaces the text by a version from the disk.
  acceptTheirs({ text, etag, how }) {
    if (how.encoding !== "UTF-8" || how.eol !== this.how.eol) return this.discard(); // the editor needs other settings for it
    this.etag = etag;
    this.how = how;
    this.code.replace(text, false);
    this.#saved(text);
    this.code.focus();
  }

  // discard drops unsaved work and reloads the file.
  async discard() {
    this.conflict.clear();
    this.dirty = false;
    const here = this.element.contains(document.activeElement);
    await this.forget();
    await this.load();
    if (here) this.focus();
  }

  // refresh checks whether the file changed on the disk. Without unsaved work it is reloaded.
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
    if (now.etag === (this.conflict.theirs?.etag ?? this.etag) && !back) return;
    if (this.saving || this.state !== "ready") return;
    if (this.part) return this.note("grown", { text: "This file has changed on disk.", acts: [{ text: "Reload", act: () => this.load() }] });
    this.conflict.collectMerge();
    if (!this.dirty) return this.reload();
    await this.#changedMeanwhile(false).catch(() => {}); // the next change or save will report it
  }

  // reload reads the file again and keeps the cursor. It gives up if the user types meanwhile.
  async reload() {
    if (!this.code || this.readOnly) return this.load();
    const now = await this.owner.files.read(this.real, { most: large + 1 }).catch(() => null);
    this.conflict.collectMerge();
    if (!now || this.dirty) return;
    this.conflict.clear();
    const found = read(now.bytes, now.part);
    if (now.part || found.kind !== "text" || found.how.eol !== this.how.eol || found.how.encoding !== this.how.encoding) return this.load();
    this.etag = now.etag;
    this.how = found.how;
    this.code.replace(found.text);
    if (this.mode === "preview") await this.setMode("preview");
  }

  // setMode shows the source or the preview.
  async setMode(mode) {
    const showing = ++this.#showing;
    if (mode === "preview") this.conflict.closeComparison();
    this.mode = mode;
    if (mode === "source") this.#hideView();
    else {
      const waits = setTimeout(() => this.#view || this.#cover(skeleton()), slow);
      const view = await this.#render().catch((err) => failure(err));
      clearTimeout(waits);
      if (showing !== this.#showing) return view.end?.();
      this.#hideView();
      this.#show(view, "preview");
    }
    this.owner.changed(this);
  }

  async #render() {
    const title = plainName(this.name);
    const { path } = this;
    this.owner.rendering(path);
    try {
      return await this.#rendered(title);
    } finally {
      this.owner.rendered(path);
    }
  }

  #rendered(title) {
    return preview(this.kind, { title, files: this.owner.files, path: this.real, tag: this.etag || this.entry.etag || "", text: this.code?.text, failed: () => this.#previewFailed() });
  }

  // #showPreview shows a file without a source. A draft is possible when a text was renamed.
  async #showPreview() {
    this.#offerDraft(await this.owner.drafts.get(this.path));
    this.dirty = false;
    this.etag = this.entry.etag ?? "";
    this.#show(await this.#render(), "preview");
  }

  #previewFailed() {
    this.#hideView();
    this.#show(failure(new Error("The browser cannot show this file."), () => this.owner.download(this)), "preview");
  }

  #show(view, mode) {
    this.#hideView();
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

  #hideView() {
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
    if (this.mode === "preview") await this.setMode("source");
    this.code.goTo(at);
  }

  end() {
    this.draftSoon.cancel();
    this.#hideView();
    this.conflict.clear();
    this.code?.end();
    this.element.remove();
  }
}
