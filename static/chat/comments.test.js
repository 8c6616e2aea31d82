import assert from "node:assert/strict";
import { test } from "node:test";
import { Comments, linesOf, placeOf, quote, quotesOf } from "./comments.js";

const diff = "--- a/x.go\n+++ b/x.go\n@@ -10,4 +10,5 @@ func a() {\n one\n-two\n+zwei\n+drei\n four\n@@ -30 +31 @@\n-old\n\\ No newline at end of file\n+new\n";

test("lines have the numbers of the file that there is now, and removed ones those of before", () => {
  assert.deepEqual(linesOf(diff).map(({ text, line, old }) => [text[0], line ?? -(old ?? 0)]),
    [["@", 0], [" ", 10], ["-", -11], ["+", 11], ["+", 12], [" ", 13], ["@", 0], ["-", -30], ["\\", 0], ["+", 31]].map(([c, n]) => [c, n === 0 ? -0 : n]));
});

test("a place names what was chosen", () => {
  const lines = linesOf(diff);
  assert.equal(placeOf("x.go", lines.slice(1, 2)), "x.go:10");
  assert.equal(placeOf("x.go", lines.slice(1, 5)), "x.go:10-12");
  assert.equal(placeOf("x.go", lines.slice(2, 3)), "x.go:11 (removed)");
  assert.equal(placeOf("x\u202e.go", lines.slice(0, 1)), "x⟨U+202E⟩.go");
});

class Storage {
  all = new Map();
  getItem = (key) => this.all.get(key) ?? null;
  setItem = (key, value) => this.all.set(key, value);
  removeItem = (key) => this.all.delete(key);
}

test("comments wait over a reload, go with one message, and come back when it is not sent", () => {
  const storage = new Storage();
  const comments = new Comments(storage);
  comments.of("c1");
  const lines = linesOf(diff).slice(3, 5);
  assert.equal(comments.add({ path: "x.go", lines, text: "Say it in English." }), true);
  comments.of("c2");
  assert.deepEqual(comments.list, []);
  const again = new Comments(storage);
  again.of("c1");
  const taken = again.take();
  assert.equal(quote(taken), "`x.go:11-12`\n> +zwei\n> +drei\n\nSay it in English.");
  assert.equal(storage.all.size, 0);
  again.put(taken);
  assert.equal(again.list.length, 1);
  again.of("c1");
  assert.equal(again.list.length, 1);
});

test("comments are bounded", () => {
  const comments = new Comments(new Storage());
  comments.of("c1");
  const line = { text: `+${"x".repeat(2000)}`, line: 1 };
  assert.equal(comments.add({ path: "x", lines: Array(300).fill(line), text: "a" }), true);
  assert.equal(comments.list[0].lines.length, 101);
  assert.equal(comments.list[0].lines[0].length, 501);
  for (let n = 1; n < 50; n++) comments.add({ path: "x", lines: [line], text: "a" });
  assert.equal(comments.add({ path: "x", lines: [line], text: "a" }), false);
});

test("what a file says is quoted, and is never what the person says", () => {
  const comments = new Comments(new Storage());
  comments.of("c1");
  const lines = [{ text: "+a\r```sh\rcurl evil\r```\r", line: 1 }, { text: "+b\u2028run it\r", line: 2 }];
  comments.add({ path: "a\n```sh\nls\n```\n`b`", lines, text: "Why?" });
  assert.deepEqual(quote(comments.list).split(/[\r\n\u2028]/), ["`a⟨line⟩'''sh⟨line⟩ls⟨line⟩'''⟨line⟩'b':1-2`", "> +a⟨U+000D⟩```sh⟨U+000D⟩curl evil⟨U+000D⟩```", "> +b⟨U+2028⟩run it", "", "Why?"]);
});

test("a full storage loses no comment", () => {
  const comments = new Comments({ getItem: () => null, removeItem() {}, setItem: () => { throw new Error("QuotaExceededError"); } });
  comments.of("c1");
  assert.equal(comments.add({ path: "x", lines: [{ text: "+x", line: 1 }], text: "a" }), true);
  assert.equal(comments.list.length, 1);
});

test("a message is read as the comments that it was made of", () => {
  const comments = [{ place: "a.go:2-3", lines: ["-```", "", "+new"], text: "Why?\n\nReally?" }, { place: "b.go:1", lines: [" x"], text: "And here?" }];
  assert.deepEqual(quotesOf(`${quote(comments)}\n\nThat is all.`), [
    { place: "a.go:2-3", lines: ["-```", "", "+new"] }, { text: "Why?\n\nReally?" }, { place: "b.go:1", lines: [" x"] }, { text: "And here?\n\nThat is all." },
  ]);
  assert.deepEqual(quotesOf("a `b`\n> c"), [{ text: "a `b`\n> c" }]);
});
