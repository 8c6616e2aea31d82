import assert from "node:assert/strict";
import { test } from "node:test";
import { filesOf, linesOf, nameFor, question, quote } from "./pasting.js";

test("pasting many lines asks first", () => {
  assert.equal(linesOf("a\r\nb\rc\n"), 3);
  for (const text of ["ls", "ls\n", "x".repeat(100_000)]) {
    assert.equal(question(text, true), null);
    assert.equal(question(text, false), null);
  }
  assert.equal(question("a\nb\nc", true), null);
  assert.deepEqual(question("a\nb", false), { title: "Paste 2 lines into the terminal?", text: "The program will run each line at once.", detail: "a\nb", act: "Paste" });
  assert.deepEqual(question("line\n".repeat(50), true), { title: "Paste 50 lines into the terminal?", text: "", detail: "line\nline\nline\n…", act: "Paste" });
});

test("pasted files get unique, safe names", () => {
  const now = new Date("2026-11-21T09:08:07.123Z");
  assert.equal(nameFor({ type: "image/png", name: "image.png" }, false, now), "2026-11-21_09-08-07-123.png");
  assert.equal(nameFor({ type: "text/x", name: "x" }, false, now), "2026-11-21_09-08-07-123.bin");
  assert.equal(nameFor({ type: "", name: "../../a\nb.txt" }, true, now), "2026-11-21_09-08-07-123-_.._a_b.txt");
  assert.equal(nameFor({ type: "", name: "" }, true, now), "2026-11-21_09-08-07-123-file");
});

test("paths are quoted for the shell where necessary", () => {
  assert.equal(quote("/home/agent/pasted/x.png"), "/home/agent/pasted/x.png");
  assert.equal(quote("/tmp/it's $HOME"), `'/tmp/it'\\''s $HOME'`);
});

test("text is preferred over files", () => {
  const data = (files, text) => ({ files, getData: () => text });
  assert.deepEqual(filesOf(data(["a"], "")), ["a"]);
  assert.deepEqual(filesOf(data(["a"], "cells")), []);
  assert.deepEqual(filesOf(null), []);
});
