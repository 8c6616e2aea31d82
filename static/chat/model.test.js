import assert from "node:assert/strict";
import { test } from "node:test";
import { Model, blocksOf, hiddenIn, shortNumber, shown, usageText } from "./model.js";

const conversation = { id: "a", rev: 3, state: "idle" };

test("changes add up, and a gap is noticed", () => {
  const m = new Model();
  m.load({ conversation, items: [{ n: 1, kind: "message", text: "hé" }], queue: [] });
  assert.deepEqual(m.take({ rev: 4, items: [{ n: 2, kind: "text", text: "ü" }], appends: [{ n: 2, field: "text", at: 2, text: "b" }] }).items, [2]);
  assert.equal(m.items.get(2).text, "üb");
  m.take({ rev: 5, appends: [{ n: 2, field: "text", at: 3, text: "c" }], queue: [{ id: "q" }] });
  assert.equal(m.items.get(2).text, "übc");
  assert.equal(m.queue.length, 1);
  assert.equal(m.rev, 5);
  assert.equal(m.take({ rev: 6, appends: [{ n: 2, field: "text", at: 9, text: "d" }] }), null);
  assert.equal(m.take({ rev: 7, gone: true }).gone, true);
});

test("text of items that are not loaded is left out", () => {
  const m = new Model();
  m.load({ conversation, items: [{ n: 5, kind: "text", text: "" }], queue: [] });
  assert.deepEqual(m.take({ rev: 4, appends: [{ n: 2, field: "text", at: 7, text: "x" }] }).items, []);
  m.older([{ n: 4, kind: "text", text: "older" }, { n: 5, kind: "text", text: "not this" }]);
  assert.deepEqual(m.list.map((i) => i.text), ["older", ""]);
});

test("the open question is found", () => {
  const m = new Model();
  m.load({ conversation, items: [{ n: 1, kind: "question", open: false }, { n: 2, kind: "question", open: true }], queue: [] });
  assert.equal(m.question.n, 2);
});

test("blocks end at blank lines outside of fences", () => {
  assert.deepEqual(blocksOf("a\n\nb"), { whole: "a\n\n", rest: "b" });
  assert.deepEqual(blocksOf("```js\na\n\nb"), { whole: "", rest: "```js\na\n\nb" });
  assert.deepEqual(blocksOf("```js\na\n\nb\n```\n\nc"), { whole: "```js\na\n\nb\n```\n\n", rest: "c" });
  assert.deepEqual(blocksOf("~~~~\n```\n\n~~~\n\n"), { whole: "", rest: "~~~~\n```\n\n~~~\n\n" });
});

test("numbers are short", () => {
  assert.deepEqual([999, 1234, 45678, 2345678].map(shortNumber), ["999", "1.2k", "46k", "2.3M"]);
  assert.equal(usageText({ input_tokens: 1000, cached_tokens: 0, output_tokens: 500, cost_usd: 0.0123, context_tokens: 50, context_window: 200 }), "25% of context · 1.5k tokens · $0.012");
  assert.equal(usageText({ input_tokens: 0, cached_tokens: 0, output_tokens: 0, cost_usd: 0 }), "");
});

test("hidden characters are shown", () => {
  assert.equal(hiddenIn("plain\n\ttext é 漢"), false);
  assert.equal(shown("rm \u202Ea\u200b"), "rm ⟨U+202E⟩a⟨U+200B⟩");
});
