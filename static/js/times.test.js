import assert from "node:assert/strict";
import { test } from "node:test";
import { relative } from "./times.js";

const now = Date.parse("2026-11-21T12:00:00Z");
const ago = (seconds) => relative(now - seconds * 1000, now);

test("times read as the server writes them", () => {
  assert.equal(ago(3), "now");
  assert.equal(ago(42), "42 s ago");
  assert.equal(ago(90), "1 min ago");
  assert.equal(ago(2 * 3600), "2 h ago");
  assert.equal(ago(3 * 86400), "3 d ago");
  assert.equal(ago(-3600), "in 1 h");
});

test("old times are dates, which the server writes", () => {
  assert.equal(ago(8 * 86400), null);
});

test("a span is how long it has lasted, also beyond a week", () => {
  const span = (seconds) => relative(now - seconds * 1000, now, "span");
  assert.equal(span(3), "3 s");
  assert.equal(span(-2), "0 s");
  assert.equal(span(2 * 3600 + 60), "2 h");
  assert.equal(span(40 * 86400), "40 d");
});

test("what is due is never in the past", () => {
  const due = (seconds) => relative(now + seconds * 1000, now, "ahead");
  assert.equal(due(720), "in 12 min");
  assert.equal(due(3), "now");
  assert.equal(due(-90), "now");
  assert.equal(due(8 * 86400), null);
});
