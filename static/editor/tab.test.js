import assert from "node:assert/strict";
import { test } from "node:test";
import { undo } from "@codemirror/commands";
import { language } from "@codemirror/language";
import { replaceAll, SearchQuery, setSearchQuery } from "@codemirror/search";
import { fakePage, turns } from "../js/fake_dom.js";
import { Problem } from "../files/api.js";
import { Code } from "./code.js"; // before fakePage: it needs no document to load
import { draftNote } from "./draft_note.js";
import { Tab } from "./tab.js";

fakePage();
const path = "/home/agent/a.txt";

// A CodeMirror view without a DOM.
class View {
  constructor({ state }) {
    this.state = state;
  }
  dispatch(spec) {
    const change = spec.state ? spec : this.state.update(spec);
    const before = this.state;
    this.state = change.state;
    const { EditorView } = View;
    for (const tell of this.state.facet(EditorView.updateListener)) tell({ docChanged: change.docChanged, selectionSet: Boolean(change.selection), startState: before, state: this.state });
  }
  focus() {}
  destroy() {}
}
View.EditorView = (await import("@codemirror/view")).EditorView;

// A fake comparison.
class Compare {
  static all = [];
  constructor(options) {
    Object.assign(this, options, { mine: options.mine, beside: false, at: 0, focused: 0 });
    Compare.all.push(this);
  }
  get text() {
    return this.mine;
  }
  type(text) {
    this.mine = text;
    this.changed();
  }
  focus() {
    this.focused++;
  }
  end() {
    this.over = true;
  }
}

// A sandbox with files {path: text}, and a tab that has loaded one.
async function open({ text = "base\n", drafts = {}, entry = {}, name = path } = {}) {
  let version = 0;
  const disk = new Map();
  const w = { disk, kept: new Map(Object.entries(drafts)), read: null, written: null, reads: [], dropped: 0 };
  w.put = (at, body) => disk.set(at, { bytes: typeof body === "string" ? new TextEncoder().encode(body) : body, etag: `"${++version}"` });
  w.text = (at = name) => new TextDecoder().decode(disk.get(at)?.bytes);
  if (text !== null) w.put(name, text);
  const there = (at) => disk.get(at) ?? (() => { throw new Problem(404, "not_found", "no"); })();
  const files = {
    stat: async (at) => ({ type: "file", mode: "0644", owner: "agent", size: there(at).bytes.length, etag: there(at).etag, ...entry }),
    read: async (at, { most } = {}) => {
      w.reads.push(most);
      const { bytes, etag } = there(at);
      await w.read?.();
      return { bytes: most ? bytes.subarray(0, most) : bytes, etag, size: bytes.length, part: Boolean(most) && bytes.length > most };
    },
    write: async (at, bytes, { ifMatch, fresh }) => {
      await w.writing?.();
      if (fresh ? disk.has(at) : there(at).etag !== ifMatch) throw new Problem(412, "", "changed");
      w.put(at, bytes);
      return { etag: disk.get(at).etag, size: bytes.length };
    },
    url: (at) => at,
  };
  const owner = {
    files, user: "agent", home: "/home/agent", wrap: false, changed() {}, moved() {}, reveal() {}, dismiss: (tab) => (w.dismissed = tab), likes: () => "source", rendering() {}, rendered() {}, open: (at) => (w.opened = at),
    drafts: {
      get: async (at) => w.kept.get(at) ?? null,
      put: async (at, draft) => Boolean(w.kept.set(at, { ...draft, at: Date.now() })),
      drop: async (at) => (w.dropped++, w.kept.delete(at)),
    },
  };
  Compare.all.length = 0;
  const parts = { code: async () => ({ Code: class extends Code { constructor(options) { super(options, View); } } }), compare: async () => ({ Compare }) };
  w.owner = owner;
  w.tab = new Tab(owner, name, true, parts);
  w.type = (body) => w.tab.code.view.dispatch({ changes: { from: 0, to: w.tab.code.view.state.doc.length, insert: body } });
  w.notes = () => w.tab.notesElement.textContent;
  w.button = (what, e = w.tab.notesElement) => (e.tag === "button" && e.textContent === what ? e : (e.children ?? []).map((c) => (typeof c === "string" ? null : w.button(what, c))).find(Boolean));
  w.press = (what) => {
    w.button(what).dispatchEvent(new Event("click"));
    return turns();
  };
  w.shown = () => Compare.all.at(-1);
  await w.tab.load();
  return w;
}

// comparing returns a tab with a conflict and an edited merge.
async function comparing() {
  const w = await open();
  w.type("mine\n");
  w.put(path, "theirs\n");
  assert.equal(await w.tab.save(), false);
  w.shown().type("merged\n");
  return w;
}

test("a merge is saved only over the version that it was made with", async () => {
  const w = await comparing();
  w.put(path, "unseen\n");
  const { tab } = w;
  assert.equal(await tab.save(), false, "a version that nobody has seen is not replaced");
  assert.equal(w.text(), "unseen\n");
  assert.equal(w.shown().theirs, "unseen\n");
  assert.equal(w.shown().mine, "merged\n", "the merge is ours now");
  assert.equal(await tab.save(), true);
  assert.equal(w.text(), "merged\n");
  assert.equal(tab.dirty, false);
});

test("a new version that arrives during a merge is shown beside it", async () => {
  const w = await comparing();
  w.put(path, "unseen\n");
  await w.tab.refresh();
  assert.equal(Compare.all.length, 2);
  assert.deepEqual([w.shown().theirs, w.shown().mine], ["unseen\n", "merged\n"]);
  await w.tab.refresh();
  assert.equal(Compare.all.length, 2, "and is not shown anew while it stays");
  assert.equal(await w.tab.save(), true);
  assert.equal(w.text(), "merged\n");
});

test("a new version takes the focus only from the merge", async () => {
  const w = await comparing();
  assert.equal(w.shown().focused, 1, "saving has asked for it");
  document.activeElement = document.body;
  w.put(path, "unseen\n");
  await w.tab.refresh();
  assert.equal(w.shown().focused, 0, "the user types elsewhere");
  document.activeElement = w.shown().parent;
  w.put(path, "unseen too\n");
  await w.tab.refresh();
  assert.equal(w.shown().focused, 1, "the user types in it");
});

test("resolving a conflict by its buttons returns the focus", async () => {
  for (const [what, refused] of [["Save merge", false], ["Keep mine", false], ["Use theirs", false], ["Keep mine", true]]) {
    const w = await comparing();
    const button = w.button(what);
    document.activeElement = button;
    let focused = 0;
    w.tab.focus = () => focused++;
    w.tab.code.focus = () => focused++;
    if (refused) w.writing = () => { throw new Problem(503, "unavailable", "It does not answer."); };
    await w.press(what);
    assert.equal(focused > 0, !refused, what);
    if (refused) assert.ok(w.notes().includes(what), "and else leaves it at the button");
  }
  document.activeElement = document.body;
});

test("a merge is saved as a draft, and leaving before that asks", async () => {
  const w = await comparing();
  await w.tab.keep();
  assert.equal(w.kept.get(path).text, "merged\n");
  assert.equal(w.tab.atRisk, false);
  w.shown().type("merged more\n");
  assert.equal(w.tab.atRisk, true);
  await w.tab.keep();
  assert.equal(w.kept.get(path).text, "merged more\n");
  assert.equal(w.kept.get(path).etag, '"1"', "what it began with, so that it is compared again");
});

test("a merge stays when the disk returns to our earlier version", async () => {
  const w = await comparing();
  w.put(path, "mine\n");
  await w.tab.refresh();
  assert.equal(w.tab.code.text, "merged\n");
  assert.ok(w.tab.dirty);
  assert.equal(w.shown().theirs, "mine\n");
});

test("a merge survives looking at the preview, and can be undone", async () => {
  const w = await comparing();
  await w.tab.setMode("preview");
  assert.equal(w.tab.comparing, null);
  assert.equal(w.tab.code.text, "merged\n");
  await w.press("Compare");
  w.shown().type("merged again\n");
  await w.press("Keep mine");
  assert.equal(w.text(), "merged\n");
});

test("text typed while a conflict is saved stays", async () => {
  const w = await open();
  w.type("mine\n");
  w.put(path, "theirs\n");
  await w.tab.refresh();
  w.writing = () => w.type("mine and more\n");
  await w.press("Keep mine");
  assert.equal(w.text(), "mine\n");
  assert.equal(w.tab.code.text, "mine and more\n");
  assert.ok(w.tab.dirty);

  const m = await comparing();
  m.writing = () => m.shown().type("merged and more\n");
  assert.equal(await m.tab.save(), true);
  assert.equal(m.text(), "merged\n");
  assert.equal(m.tab.code.text, "merged and more\n");
  assert.ok(m.tab.dirty);
});

test("text that a full disk refuses stays, becomes a draft, and can be saved later", async () => {
  const w = await open();
  w.type("mine\n");
  w.writing = () => { throw new Problem(507, "disk_full", "The sandbox's disk is full."); };
  assert.equal(await w.tab.save(), false);
  assert.match(w.notes(), /Not saved: The sandbox's disk is full\./);
  assert.equal(w.text(), "base\n", "the old file stays");
  assert.deepEqual([w.tab.code.text, w.tab.dirty], ["mine\n", true]);
  await w.tab.keep();
  assert.equal(w.kept.get(path).text, "mine\n");
  w.writing = null;
  await w.press("Retry");
  assert.equal(w.text(), "mine\n");
  assert.equal(w.tab.dirty, false);
  assert.doesNotMatch(w.notes(), /Not saved/);
});

test("the language is found by the file's name or first line", async () => {
  for (const [name, text, want] of [
    ["main.go", "package main\n", "Go"], ["app.py", "import os\n", "Python"], ["app.js", "let a = 1;\n", "JavaScript"], ["app.ts", "let a: number;\n", "TypeScript"],
    ["lib.rs", "fn main() {}\n", "Rust"], ["a.c", "int a;\n", "C"], ["A.java", "class A {}\n", "Java"], ["a.css", "a {}\n", "CSS"], ["a.json", "{}\n", "JSON"],
    ["a.yaml", "a: 1\n", "YAML"], ["a.sql", "select 1;\n", "SQL"], ["a.toml", "a = 1\n", "TOML"], ["Dockerfile", "FROM scratch\n", "Dockerfile"], ["a.sh", "true\n", "Shell"],
    ["run", "#!/usr/bin/env bash\ntrue\n", "Shell"], ["tool", "#!/usr/bin/python3\n", "Python"],
  ]) {
    const { code } = (await open({ name: `/home/agent/${name}`, text })).tab;
    for (const late = Date.now() + 60_000; !code.view.state.facet(language) && Date.now() < late; ) await turns(); // loaded asynchronously
    assert.equal(code.language, want, name);
    assert.ok(code.view.state.facet(language), `${name} is read as ${want}`);
  }
  const { code } = (await open({ name: "/home/agent/notes", text: "nothing in particular\n" })).tab;
  await turns();
  assert.deepEqual([code.language, code.view.state.facet(language)], ["Plain text", null]);
});

test("replace all changes every match, marks the file unsaved, and undoes in one step", async () => {
  const w = await open({ text: "one two\none\nOne (one)\n" });
  const { view } = w.tab.code;
  view.dispatch({ effects: setSearchQuery.of(new SearchQuery({ search: "one", replace: "1", caseSensitive: true })) });
  assert.equal(replaceAll(view), true);
  assert.equal(w.tab.code.text, "1 two\n1\nOne (1)\n");
  assert.equal(w.tab.dirty, true);
  assert.equal(undo({ state: view.state, dispatch: (change) => view.dispatch(change) }), true);
  assert.equal(w.tab.code.text, "one two\none\nOne (one)\n");
  view.dispatch({ effects: setSearchQuery.of(new SearchQuery({ search: "o(n)e", replace: "$1", regexp: true })) });
  replaceAll(view);
  assert.equal(w.tab.code.text, "n two\nn\nn (n)\n");
  assert.equal(await w.tab.save(), true);
  assert.equal(w.text(), "n two\nn\nn (n)\n");
});

test("the buttons of a conflict do what they say", async () => {
  const kept = await comparing();
  await kept.press("Keep mine");
  assert.equal(kept.text(), "mine\n");
  const taken = await comparing();
  await taken.press("Use theirs");
  assert.equal(taken.tab.code.text, "theirs\n");
  assert.equal(taken.tab.dirty, false);
});

test("the draft of a deleted file is shown and can be saved", async () => {
  const w = await open({ text: null, drafts: { [path]: { text: "work\n", etag: '"9"', how: { bom: false, eol: "\n", encoding: "UTF-8" }, at: 1 } } });
  assert.equal(w.tab.state, "ready");
  assert.equal(w.tab.code.text, "work\n");
  assert.ok(w.tab.dirty);
  assert.match(w.notes(), /deleted on disk/);
  assert.equal(await w.tab.save(), true);
  assert.equal(w.text(), "work\n");
});

test("the draft of a file that became read-only is offered, and can be saved elsewhere", async () => {
  const draft = { text: "work\n", etag: '"9"', how: { bom: false, eol: "\r\n", encoding: "UTF-8" }, at: 1 };
  for (const made of [{ entry: { owner: "root" } }, { text: "x\n".repeat(3 << 20) }, { text: "\0" }]) {
    const w = await open({ ...made, drafts: { [path]: draft } });
    assert.equal(w.tab.state, "ready");
    assert.match(w.notes(), /unsaved work/);
    assert.ok(w.kept.has(path));
    const answers = { ask: async ({ body }) => (Object.assign(body, { value: "b.txt" }), "save"), confirm: async () => true, tell: (...told) => (w.told = told) };
    const note = draftNote(w.tab, draft, answers);
    w.put("/home/agent/b.txt", "taken");
    await note.acts.find((a) => a.text === "Save as…").act();
    assert.equal(w.text("/home/agent/b.txt"), "taken");
    assert.match(w.told[1], /already/);
    w.disk.delete("/home/agent/b.txt");
    await note.acts.find((a) => a.text === "Save as…").act();
    assert.equal(w.text("/home/agent/b.txt"), "work\r\n");
    assert.equal(w.opened, "/home/agent/b.txt");
    assert.ok(!w.kept.has(path));
  }
});

test("the draft of a text renamed to an image is offered, and the tab is not unsaved", async () => {
  const name = "/home/agent/a.png";
  const w = await open({ name });
  w.kept.set(name, { text: "work\n", etag: '"1"', at: 1 });
  w.tab = new Tab(w.owner, name, true, w.tab.parts);
  w.tab.dirty = true; // as the editor creates a tab with a draft
  await w.tab.load();
  assert.deepEqual([w.tab.state, w.tab.mode, w.tab.dirty], ["ready", "preview", false]);
  assert.match(w.notes(), /unsaved work/);
  assert.ok(w.kept.has(name));
});

test("only a part is read of a file that became large", async () => {
  const large = new Uint8Array(6 << 20).fill(97);
  const w = await open();
  w.put(path, large);
  await w.tab.refresh();
  assert.ok(w.tab.part);
  assert.ok(w.tab.readOnly);
  const mine = await open();
  mine.type("mine\n");
  mine.put(path, large);
  await mine.tab.save();
  assert.match(mine.notes(), /too large/);
  assert.equal(mine.tab.code.text, "mine\n");
  for (const most of [...w.reads, ...mine.reads]) assert.ok(most > 0 && most <= (5 << 20) + 1, `read ${most}`);
  await mine.press("Overwrite with mine");
  assert.equal(mine.text(), "mine\n");
});

test("a text that is being replaced is read-only", async () => {
  const w = await open();
  w.put(path, "one\r\ntwo\r\n"); // other line endings: the editor is recreated
  let readOnly;
  w.read = () => (readOnly = w.tab.code.view.state.readOnly);
  await w.tab.refresh();
  assert.equal(readOnly, true);
  assert.equal(w.tab.code.text, "one\ntwo\n");
  assert.equal(w.tab.code.view.state.readOnly, false);
});

test("a reload gives up when the user types", async () => {
  const w = await open();
  w.put(path, "theirs\n");
  w.read = () => w.type("mine\n");
  await w.tab.refresh();
  assert.equal(w.tab.code.text, "mine\n");
  assert.ok(w.tab.dirty);
});

test("text from the disk is never unsaved, and deletes no draft", async () => {
  const w = await open();
  w.put(path, "theirs\n");
  await w.tab.refresh();
  assert.equal(w.tab.code.text, "theirs\n");
  assert.equal(w.tab.dirty, false);
  assert.equal(w.dropped, 0);
  w.type("mine\n");
  w.type("theirs\n");
  assert.equal(w.dropped, 1, "but undoing all that was typed does");
});

test("a text is editable only once it and its draft are complete", async () => {
  const w = await open();
  let go;
  w.owner.drafts.get = () => new Promise((give) => (go = give));
  w.tab = new Tab(w.owner, path, true, w.tab.parts);
  const loaded = w.tab.load();
  await turns();
  assert.equal(w.tab.code, undefined);
  go({ text: "work\n", etag: '"1"', how: w.tab.how, at: 1 });
  await loaded;
  assert.equal(w.tab.code.text, "work\n");
});

test("loads can be joined", async () => {
  const w = await open();
  let go;
  w.read = () => new Promise((read) => (go = read));
  const loaded = w.tab.load();
  await turns();
  assert.equal(w.tab.state, "loading");
  go();
  await w.tab.loading;
  assert.equal(w.tab.state, "ready");
  await loaded;
});

test("a draft is restored, and compared when the file has changed since", async () => {
  const how = { bom: false, eol: "\n", encoding: "UTF-8" };
  const same = await open({ drafts: { [path]: { text: "work\n", etag: '"1"', how, at: 1 } } });
  assert.equal(same.tab.code.text, "work\n");
  assert.match(same.notes(), /restored/);
  const other = await open({ drafts: { [path]: { text: "work\n", etag: '"0"', how, at: 1 } } });
  assert.match(other.notes(), /since changed on disk/);
  await other.press("Compare");
  assert.deepEqual([other.shown().theirs, other.shown().mine], ["base\n", "work\n"]);
});

test("a file that crashed the last page is only rendered on request", async () => {
  const w = await open({ name: "/home/agent/a.md" });
  const rendered = [];
  w.owner.likes = () => "preview";
  w.owner.rendering = (at) => rendered.push(at);
  w.tab = new Tab(w.owner, "/home/agent/a.md", true, w.tab.parts);
  w.tab.askBeforeRendering();
  assert.equal(w.tab.state, "idle");
  await w.press("Show source");
  assert.equal(w.tab.code.text, "base\n");
  assert.deepEqual(rendered, []);
  await w.tab.setMode("preview");
  assert.deepEqual(rendered, ["/home/agent/a.md"], "and is noted before it is rendered");
});

test("an empty file opens as source, also where previews are liked", async () => {
  const w = await open({ name: "/home/agent/a.md", text: "" });
  w.owner.likes = () => "preview";
  await w.tab.load();
  assert.equal(w.tab.mode, "source");
  w.put("/home/agent/a.md", "# a\n");
  await w.tab.load();
  assert.equal(w.tab.mode, "preview");
});
