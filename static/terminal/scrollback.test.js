import assert from "node:assert/strict";
import { test } from "node:test";
import { arrow, control } from "./keybar.js";
import { wholeLine } from "./path_links.js";
import { coloursOnly } from "./sequences.js";

test("extra keys send what a keyboard sends", () => {
  assert.equal(control("c"), "\x03");
  assert.equal(control("["), "\x1b");
  assert.equal(control(" "), "\0");
  assert.equal(control("é"), null);
  assert.equal(control("ab"), null);
  assert.equal(arrow("up", false), "\x1b[A");
  assert.equal(arrow("left", true), "\x1bOD");
});

// A buffer of rows: [text, wrapped]. Characters beyond Latin are two cells wide.
function buffer(...rows) {
  const cells = (text) => [...text].flatMap((c) => (c > "\u02ff" ? [cell(c, 2), cell("", 0)] : [cell(c, 1)]));
  const cell = (chars, width) => ({ getChars: () => chars, getWidth: () => width });
  const lines = rows.map(([text, isWrapped]) => {
    const all = cells(text);
    return { isWrapped, length: all.length, getCell: (x) => all[x] };
  });
  return { getLine: (row) => lines[row] };
}

test("a wrapped line is read as one, with the cells of its characters", () => {
  const b = buffer(["other", false], ["see 文/x", false], [".js:3", true], ["next", false]);
  for (const row of [1, 2]) {
    const line = wholeLine(b, row);
    assert.equal(line.text, "see 文/x.js:3");
    assert.deepEqual(line.place(4), { x: 5, y: 2 });
    assert.deepEqual(line.place(5), { x: 7, y: 2 });
    assert.deepEqual(line.place(11), { x: 5, y: 3 });
  }
  assert.equal(wholeLine(b, 9), null);
});

test("recordings keep only colours", () => {
  assert.equal(coloursOnly("\x1b[1;31mred\x1b[0m \x1b[2Jx\x1b]0;title\x07y\x1b]52;c;aGk=\x1b\\z\x1bcw\r\n\x1bPq\x1b\\!\x1b[?1049h\x9b"), "\x1b[1;31mred\x1b[0m xyzw\n!");
  assert.equal(coloursOnly("plain\ttext\n日本"), "plain\ttext\n日本");
  assert.equal(coloursOnly("\x1b]0;never ends"), "");
  assert.equal(coloursOnly("a\x9b2Jb\x9d8;;https://evil.example\x9cc\x90d\x85e\x80\xa0é"), "a2Jb8;;https://evil.examplecde\xa0é");
});
