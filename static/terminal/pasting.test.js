import assert from "node:assert/strict";
import { test } from "node:test";
import { filesOf, linesOf, nameFor, question, quote } from "./pasting.js";

test("a paste of many lines is asked for, one line never is", () => {
  assert.equal(linesOf("a\r\nb\rc\n"), 3);
  for (const text of ["ls", "ls\n", "x".repeat(100_000)]) {
    assert.equal(question(text, true), "");
    assert.equal(question(text, false), "");
  }
  assert.equal(question("a\nb\nc", true), "");
  assert.match(question("a\nb", false), /^Paste 2 lines .*runs each line/su);
  assert.match(question("line\n".repeat(50), true), /^Paste 50 lines into the terminal\?\n\nline\nline\nline\n…$/u);
});

test("files have names that no other has, and that do no harm", () => {
  const now = new Date("2026-11-21T09:08:07.123Z");
  assert.equal(nameFor({ type: "image/png", name: "image.png" }, false, now), "2026-11-21_09-08-07-123.png");
  assert.equal(nameFor({ type: "text/x", name: "x" }, false, now), "2026-11-21_09-08-07-123.bin");
  assert.equal(nameFor({ type: "", name: "../../a\nb.txt" }, true, now), "2026-11-21_09-08-07-123-_.._a_b.txt");
  assert.equal(nameFor({ type: "", name: "" }, true, now), "2026-11-21_09-08-07-123-file");
});

test("a path is quoted where a shell would take it apart", () => {
  assert.equal(quote("/home/agent/pasted/x.png"), "/home/agent/pasted/x.png");
  assert.equal(quote("/tmp/it's $HOME"), `'/tmp/it'\\''s $HOME'`);
});

test("where there is text beside files the text is meant", () => {
  const data = (files, text) => ({ files, getData: () => text });
  assert.deepEqual(filesOf(data(["a"], "")), ["a"]);
  assert.deepEqual(filesOf(data(["a"], "cells")), []);
  assert.deepEqual(filesOf(null), []);
});
