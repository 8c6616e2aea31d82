import assert from "node:assert/strict";
import { test } from "node:test";
import { toggleMark, press, selection, start } from "./caret.js";

const lines = ["first line", "", "  third  one", "last"];
const page = { rows: lines.length, cols: 20, height: 2, text: (row) => lines[row] };
const none = { shift: false, ctrl: false };
const shift = { shift: true, ctrl: false };
const ctrl = { shift: false, ctrl: true };

function walk(caret, ...keys) {
  return keys.reduce((c, [key, held]) => press(c, key, held ?? none, page), caret);
}

const at = ({ row, col }) => [row, col];

test("keys move the caret within the page", () => {
  assert.deepEqual(at(walk(start(0), ["ArrowLeft"])), [0, 0]);
  assert.deepEqual(at(walk(start(0), ["End"], ["ArrowRight"])), [1, 0]);
  assert.deepEqual(at(walk(start(1), ["ArrowLeft"])), [0, 9]);
  assert.deepEqual(at(walk(start(0), ["PageDown"], ["PageDown"], ["PageDown"])), [3, 0]);
  assert.deepEqual(at(walk(start(3, 2), ["PageUp"])), [1, 2]);
  assert.deepEqual(at(walk(start(1), ["End", ctrl], ["ArrowRight"], ["ArrowDown"])), [3, 3]);
  assert.deepEqual(at(walk(start(2, 5), ["Home"], ["ArrowRight", ctrl])), [2, 2]);
  assert.deepEqual(at(walk(start(2, 2), ["ArrowRight", ctrl], ["ArrowRight", ctrl])), [3, 0]);
  assert.deepEqual(at(walk(start(2, 11), ["ArrowLeft", ctrl], ["ArrowLeft", ctrl])), [2, 2]);
  assert.equal(press(start(0), "x", none, page), null);
});

test("Shift selects, and moving without it deselects", () => {
  const some = walk(start(0, 2), ["ArrowRight", shift], ["ArrowDown", shift]);
  assert.deepEqual(some.from, { row: 0, col: 2 });
  assert.deepEqual(selection(some, 20), { row: 0, col: 2, length: 22 });
  assert.equal(walk(some, ["ArrowUp"]).from, null);
  assert.deepEqual(selection(walk(start(2, 3), ["ArrowUp", shift]), 20), { row: 1, col: 3, length: 21 });
  assert.deepEqual(selection(start(3, 1), 20), { row: 3, col: 1, length: 1 });
});

test("with a mark, moving selects without Shift", () => {
  const some = walk(toggleMark(start(0, 1)), ["ArrowDown"], ["ArrowDown"]);
  assert.deepEqual(selection(some, 20), { row: 0, col: 1, length: 41 });
  assert.equal(toggleMark(some).from, null);
});

test("Ctrl+A selects all", () => {
  assert.deepEqual(selection(press(start(2), "a", ctrl, page), 20), { row: 0, col: 0, length: 64 });
});
