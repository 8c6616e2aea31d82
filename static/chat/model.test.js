import assert from "node:assert/strict";
import { test } from "node:test";
import { Model, hiddenIn, shortNumber, shown, usageText, usageTitle } from "./model.js";

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
  m.load({ conversation, first: 5, items: [{ n: 5, kind: "text", text: "" }], queue: [] });
  assert.deepEqual(m.take({ rev: 4, appends: [{ n: 2, field: "text", at: 7, text: "x" }] }).items, []);
  m.older({ first: 3, items: [{ n: 4, rev: 9, kind: "text", text: "older" }, { n: 5, kind: "text", text: "not this" }] }); // item 3 is not shown
  assert.deepEqual([m.first, ...m.list.map((i) => i.text)], [3, "older", ""]);
  assert.deepEqual(m.take({ rev: 9, appends: [{ n: 4, field: "text", at: 2, text: "der" }] }).items, [], "it was loaded with that");
  assert.deepEqual(m.take({ rev: 10, appends: [{ n: 4, field: "text", at: 5, text: "!" }] }).items, [4]);
});

test("the open question is found", () => {
  const m = new Model();
  m.load({ conversation, items: [{ n: 1, kind: "question", open: false }, { n: 2, kind: "question", open: true }], queue: [] });
  assert.equal(m.question.n, 2);
});

test("numbers are short", () => {
  assert.deepEqual([999, 1234, 45678, 2345678].map(shortNumber), ["999", "1.2k", "46k", "2.3M"]);
  assert.equal(usageText({ input_tokens: 1000, cached_tokens: 0, output_tokens: 500, cost_usd: 0.0123, context_tokens: 50, context_window: 200 }), "25% of context · 1.5k tokens · $0.012");
  assert.equal(usageText({ input_tokens: 0, cached_tokens: 0, output_tokens: 0, cost_usd: 0 }), "");
  assert.equal(usageText({ input_tokens: 20000, cached_tokens: 0, output_tokens: 0, cost_usd: 0, context_tokens: 12345, context_window: 0 }), "12k in context · 20k tokens");
  assert.equal(usageTitle({ cost_usd: 0, unpriced: true, context_tokens: 12345, context_window: 0 }), "");
  assert.equal(usageText({ input_tokens: 20000, cached_tokens: 0, output_tokens: 0, cost_usd: 0, unpriced: true }), "20k tokens · price not known");
  assert.equal(usageTitle({ cost_usd: 1, unpriced: true, context_tokens: 50000, context_window: 200000 }), "50k of 200k tokens in context · the price of some of it is not known, and it is not in the cost");
  assert.equal(usageTitle({ cost_usd: 1, unpriced: false, context_tokens: 0, context_window: 0 }), "");
});

test("hidden characters are shown", () => {
  assert.equal(hiddenIn("plain\n\ttext é 漢"), false);
  assert.equal(shown("rm \u202Ea\u200b"), "rm ⟨U+202E⟩a⟨U+200B⟩");
  assert.equal(shown("a\rb\r\nc\u034f\u3164\u{e0100}x\ufe0f\u2800"), "a⟨U+000D⟩b\r\nc⟨U+034F⟩⟨U+3164⟩⟨U+E0100⟩x⟨U+FE0F⟩⟨U+2800⟩");
  assert.equal(hiddenIn("done ✔️ ⚠️ 漢字 عربي é"), false);
});
