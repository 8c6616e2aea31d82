import assert from "node:assert/strict";
import { test } from "node:test";
import { paneBefore, ratio, resize, reveal, serialize, toggle, visible } from "./layout.js";

const panes = () => [
  { id: "files", share: 450, hidden: false },
  { id: "terminal", share: 350, hidden: false },
  { id: "notes", share: 200, hidden: false },
];
const shares = (list) => list.map((p) => p.share);
const ids = (list) => list.map((p) => p.id);

test("a splitter resizes the two panes beside it only", () => {
  assert.deepEqual(shares(resize(panes(), "terminal", 0.25, 0.1)), [200, 600, 200]);
  assert.deepEqual(shares(resize(panes(), "notes", 0.9, 0.1)), [450, 495, 55]);
  assert.equal(ratio(resize(panes(), "terminal", 0.25, 0.1), "terminal"), 0.25);
  assert.deepEqual(shares(resize(panes(), "files", 0.5, 0.1)), [450, 350, 200]);
});

test("panes keep their minimum width", () => {
  assert.deepEqual(shares(resize(panes(), "terminal", 0, 0.2)), [160, 640, 200]);
  assert.deepEqual(shares(resize(panes(), "terminal", 1, 0.2)), [640, 160, 200]);
  assert.deepEqual(shares(resize(panes(), "terminal", 0.9, 0.5)), [400, 400, 200]);
});

test("a splitter skips hidden panes", () => {
  const list = toggle(panes(), "terminal");
  assert.equal(paneBefore(list, "notes").id, "files");
  assert.deepEqual(shares(resize(list, "notes", 0.5, 0.1)), [325, 350, 325]);
  assert.equal(paneBefore(list, "files"), null);
});

test("panes hide and return, except the last visible one", () => {
  let list = toggle(toggle(panes(), "files"), "notes");
  assert.deepEqual(ids(visible(list)), ["terminal"]);
  list = toggle(list, "terminal");
  assert.deepEqual(ids(visible(list)), ["terminal"]);
  assert.deepEqual(ids(visible(reveal(list, "notes"))), ["terminal", "notes"]);
});

test("layouts are serialized as the server accepts them", () => {
  assert.deepEqual(serialize([{ id: "files", share: 0, hidden: true }, { id: "terminal", share: 5000, hidden: false }]), {
    files: { share: 1, hidden: true }, terminal: { share: 1000, hidden: false },
  });
});
