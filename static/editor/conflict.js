// Conflict handles a file that changed on the disk while it had unsaved work. It shows both versions; what the user merges
// there is the tab's text, and is collected before any other use of it. A merge is saved only over the version that it was
// made with.
import { announce } from "../js/announce.js";
import { h } from "../js/dom.js";

export class Conflict {
  #text = "";

  // tab: {code, cover, mode, how, note(id, note), setMode(mode), write(text, etag), discard(), mergeChanged(), acceptTheirs(theirs)}
  constructor(tab, load) {
    this.tab = tab;
    this.load = load;
    this.theirs = null; // {text, etag, how} on the disk; text is null when it cannot be compared
    this.comparing = null; // {view, etag, mine}: the comparison, the version it was made with, and our text before merging
  }

  // collectMerge copies the merged text into the tab.
  collectMerge() {
    const { code } = this.tab;
    const text = this.comparing?.view.text;
    if (code && text !== undefined && text !== code.text) code.replace(text, false);
  }

  // show reports a new version on the disk, and updates an open comparison.
  async show(theirs, text, show = false) {
    const shown = this.comparing;
    this.collectMerge();
    this.theirs = theirs;
    this.#text = text;
    this.#tell(text);
    if (show || (shown && shown.etag !== theirs.etag)) await this.compare({ focus: show });
  }

  // block reports a version on the disk that cannot be compared.
  block(etag, text) {
    this.#close();
    this.theirs = { text: null, etag };
    this.#say(text, [
      { text: "Overwrite with mine", act: () => this.keepMine() },
      { text: "Use theirs", act: () => this.tab.discard() },
    ]);
  }

  #tell(text) {
    this.#say(text, [
      !this.comparing && { text: "Compare", act: () => this.compare() },
      this.comparing && { text: "Save merge", primary: true, act: () => this.tab.save() },
      { text: "Keep mine", act: () => this.keepMine() },
      { text: "Use theirs", act: () => this.takeTheirs() },
    ].filter(Boolean));
  }

  #say(text, acts) {
    this.tab.note("conflict", { tone: "busy", icon: "warn", text, acts });
    announce(text);
  }

  // compare shows both versions, to merge and save.
  async compare({ focus = true } = {}) {
    const { tab } = this;
    const { Compare } = await this.load();
    if (tab.mode === "preview") await tab.setMode("source");
    if (!this.theirs || this.theirs.text === null || !tab.code) return; // resolved meanwhile
    this.collectMerge();
    const before = this.comparing;
    const place = h("div", { class: "compare" });
    const there = Boolean(before) && tab.cover.contains(document.activeElement); // do not take the focus from elsewhere
    before?.view.end();
    tab.cover.replaceChildren(place);
    tab.cover.hidden = false;
    const { text, etag } = this.theirs;
    const view = new Compare({ parent: place, theirs: text, mine: tab.code.text, at: before?.view.at ?? 0, eol: tab.how.eol, changed: () => tab.mergeChanged() });
    if (view.beside) place.before(h("div", { class: "compare-heads" }, h("span", {}, "On disk"), h("span", {}, "Yours")));
    this.comparing = { view, etag, mine: before?.mine ?? tab.code.text };
    const again = before && before.etag !== etag ? "The file has changed on disk again. " : "";
    this.#tell(again + (view.beside ? "The version on disk is on the left, yours on the right. Edit yours and save it." : "Red lines are on disk, green lines are yours. Edit, then save."));
    if (focus || there) view.focus();
  }

  // closeComparison keeps the merged text.
  closeComparison() {
    if (!this.comparing) return;
    this.#close();
    this.#tell(this.#text);
  }

  #close() {
    if (!this.comparing) return;
    this.collectMerge();
    this.comparing.view.end();
    this.comparing = null;
    this.tab.cover.hidden = true;
    this.tab.cover.replaceChildren();
  }

  // keepMine saves our text as it was before merging. Undo restores the merge.
  keepMine() {
    const { tab, comparing, theirs } = this;
    if (!theirs || !tab.code) return false;
    this.#close();
    if (comparing && comparing.mine !== tab.code.text) tab.code.replace(comparing.mine, false);
    return tab.write(tab.code.text, comparing?.etag ?? theirs.etag);
  }

  takeTheirs() {
    const { theirs } = this;
    this.#close();
    if (theirs) this.tab.acceptTheirs(theirs);
  }

  // clear ends the conflict.
  clear() {
    this.#close();
    this.theirs = null;
    this.tab.note("conflict", null);
  }
}
