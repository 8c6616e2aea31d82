// Conflict is what stands between the text of a tab and a version of the file that came to the disk meanwhile. Both are
// shown beside each other, and what is merged there by hand is the tab's text: it is taken over before anything else is
// done with that. A merge is saved over the version that it was made with, and no other.
import { announce } from "../js/announce.js";
import { h } from "../js/dom.js";

export class Conflict {
  #text = "";

  // tab: {code, cover, mode, how, note(id, note), setMode(mode), write(text, etag), discard(), mergeChanged(), acceptTheirs(theirs)}
  constructor(tab, load) {
    this.tab = tab;
    this.load = load;
    this.theirs = null; // {text, etag, how} of what is on the disk; text is null when it cannot be shown beside ours
    this.comparing = null; // {view, etag, mine}: what is shown, the version it was made with, and ours before it
  }

  // collectMerge takes what has been merged by hand into the tab's text.
  collectMerge() {
    const { code } = this.tab;
    const text = this.comparing?.view.text;
    if (code && text !== undefined && text !== code.text) code.replace(text, false);
  }

  // show says that theirs is on the disk now. What is shown beside ours becomes that.
  async show(theirs, text, show = false) {
    const shown = this.comparing;
    this.collectMerge();
    this.theirs = theirs;
    this.#text = text;
    this.#tell(text);
    if (show || (shown && shown.etag !== theirs.etag)) await this.compare({ focus: show });
  }

  // block says that what is on the disk now cannot be shown beside ours.
  block(etag, text) {
    this.#close();
    this.theirs = { text: null, etag };
    this.#say(text, [
      { text: "Replace it with mine", act: () => this.keepMine() },
      { text: "Take theirs", act: () => this.tab.discard() },
    ]);
  }

  #tell(text) {
    this.#say(text, [
      !this.comparing && { text: "Compare", act: () => this.compare() },
      this.comparing && { text: "Save this", primary: true, act: () => this.tab.save() },
      { text: "Keep mine", act: () => this.keepMine() },
      { text: "Take theirs", act: () => this.takeTheirs() },
    ].filter(Boolean));
  }

  #say(text, acts) {
    this.tab.note("conflict", { tone: "busy", icon: "warn", text, acts });
    announce(text);
  }

  // compare shows theirs and mine, which can be merged by hand and saved.
  async compare({ focus = true } = {}) {
    const { tab } = this;
    const { Compare } = await this.load();
    if (tab.mode === "preview") await tab.setMode("source");
    if (!this.theirs || this.theirs.text === null || !tab.code) return; // it was settled meanwhile
    this.collectMerge();
    const before = this.comparing;
    const place = h("div", { class: "compare" });
    const there = Boolean(before) && tab.cover.contains(document.activeElement); // and nowhere else, where what is typed is meant for something else
    before?.view.end();
    tab.cover.replaceChildren(place);
    tab.cover.hidden = false;
    const { text, etag } = this.theirs;
    const view = new Compare({ parent: place, theirs: text, mine: tab.code.text, at: before?.view.at ?? 0, eol: tab.how.eol, changed: () => tab.mergeChanged() });
    if (view.beside) place.before(h("div", { class: "compare-heads" }, h("span", {}, "On the disk"), h("span", {}, "Yours")));
    this.comparing = { view, etag, mine: before?.mine ?? tab.code.text };
    const again = before && before.etag !== etag ? "It has changed on the disk once more. " : "";
    this.#tell(again + (view.beside ? "On the left is what is on the disk now, on the right yours. Make it right and save it." : "Red lines are on the disk now, green ones are yours. Make it right and save it."));
    if (focus || there) view.focus();
  }

  // closeComparison stops comparing, and keeps what was merged.
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

  // keepMine saves ours as it was before anything was merged; that can be had again by undoing.
  keepMine() {
    const { tab, comparing, theirs } = this;
    if (!theirs || !tab.code) return false;
    this.#close();
    if (comparing && comparing.mine !== tab.code.text) tab.code.replace(comparing.mine, false);
    return tab.write(tab.code.text, comparing?.etag ?? theirs.etag);
  }

  // takeTheirs makes theirs ours.
  takeTheirs() {
    const { theirs } = this;
    this.#close();
    if (theirs) this.tab.acceptTheirs(theirs);
  }

  // clear is when there is no conflict any more.
  clear() {
    this.#close();
    this.theirs = null;
    this.tab.note("conflict", null);
  }
}
