import assert from "node:assert/strict";
import { test } from "node:test";
import { fitsBeside, hide, paneBefore, ratio, resize, restore, reveal, serialize, shown, visible } from "./layout.js";

const panes = () => [
  { id: "files", side: true, share: 0, hidden: false },
  { id: "editor", share: 450, hidden: false },
  { id: "terminal", share: 350, hidden: false },
  { id: "notes", share: 200, hidden: false },
];
const shares = (list) => list.slice(1).map((p) => p.share);
const ids = (list) => list.map((p) => p.id);
const empty = (list, id) => list.map((p) => (p.id === id ? { ...p, empty: true } : p));

test("a splitter resizes the two panes beside it only", () => {
  assert.deepEqual(shares(resize(panes(), "terminal", 0.25, 0.1)), [200, 600, 200]);
  assert.deepEqual(shares(resize(panes(), "notes", 0.9, 0.1)), [450, 495, 55]);
  assert.equal(ratio(resize(panes(), "terminal", 0.25, 0.1), "terminal"), 0.25);
});

test("the sidebar shares no room with the others", () => {
  assert.equal(paneBefore(panes(), "editor"), null);
  assert.deepEqual(shares(resize(panes(), "editor", 0.5, 0.1)), [450, 350, 200]);
});

test("panes keep their minimum size", () => {
  assert.deepEqual(shares(resize(panes(), "terminal", 0, 0.2)), [160, 640, 200]);
  assert.deepEqual(shares(resize(panes(), "terminal", 1, 0.2)), [640, 160, 200]);
  assert.deepEqual(shares(resize(panes(), "terminal", 0.9, 0.5)), [400, 400, 200]);
});

test("a splitter skips hidden and empty panes", () => {
  for (const list of [hide(panes(), "terminal"), empty(panes(), "terminal")]) {
    assert.equal(paneBefore(list, "notes").id, "editor");
    assert.deepEqual(shares(resize(list, "notes", 0.5, 0.1)), [325, 350, 325]);
  }
});

test("panes hide and return, except the last one beside the sidebar", () => {
  let list = hide(hide(panes(), "editor"), "notes");
  assert.deepEqual(ids(visible(list)), ["files", "terminal"]);
  list = hide(list, "terminal");
  assert.deepEqual(ids(visible(list)), ["files", "terminal"]);
  assert.deepEqual(ids(visible(hide(list, "files"))), ["terminal"]);
  assert.deepEqual(ids(shown(reveal(list, "notes"))), ["terminal", "notes"]);
});

test("a hidden pane returns when nothing is left to see", () => {
  const list = hide(panes().slice(0, 3), "terminal");
  assert.deepEqual(ids(shown(list)), ["editor"]);
  assert.deepEqual(ids(shown(empty(list, "editor"))), ["terminal"]);
});

test("layouts are serialized as the server accepts them, and restored", () => {
  const list = [{ id: "files", side: true, share: 0, hidden: true }, { id: "editor", share: 0, hidden: true }, { id: "terminal", share: 5000, hidden: false }];
  const kept = serialize(list);
  assert.deepEqual(kept, { files: { hidden: true }, editor: { share: 1, hidden: true }, terminal: { share: 1000, hidden: false } });
  const again = restore([{ id: "files", side: true, usual: 0 }, { id: "editor", usual: 600 }, { id: "notes", usual: 300, hidden: true }], kept);
  assert.deepEqual(again.map(({ id, share, hidden }) => [id, share, hidden]), [["files", 0, true], ["editor", 1, true], ["notes", 300, false]]);
  const late = restore([{ id: "editor", usual: 600, hides: true }, { id: "chat", usual: 450, hides: true }], kept);
  assert.deepEqual(late.map(({ id, hidden }) => [id, hidden]), [["editor", true], ["chat", true]]);
  assert.deepEqual(restore([{ id: "chat", usual: 450, hides: true }], { chat: { share: 300 } })[0].hidden, false);
});

test("the chat is beside one other pane from a medium window on", () => {
  const pane = (id, more = {}) => ({ id, share: 1, usual: 1, hidden: false, empty: false, side: false, ...more });
  const two = [pane("files", { side: true }), pane("editor", { empty: true }), pane("terminal"), pane("chat")];
  const three = two.map((p) => ({ ...p, empty: false }));
  const other = two.map((p) => (p.id === "chat" ? { ...p, hidden: true } : { ...p, empty: false }));
  assert.deepEqual(["wide", "medium", "narrow"].map((width) => fitsBeside(two, width)), [true, true, false]);
  assert.deepEqual(["wide", "medium"].map((width) => fitsBeside(three, width)), [true, false]);
  assert.deepEqual(["wide", "medium"].map((width) => fitsBeside(other, width)), [true, false]);
});
