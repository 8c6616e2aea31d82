import assert from "node:assert/strict";
import { test } from "node:test";
import { relative } from "./times.js";

const now = Date.parse("2026-11-21T12:00:00Z");
const ago = (seconds) => relative(now - seconds * 1000, now);

test("times are formatted as by the server", () => {
  assert.equal(ago(3), "just now");
  assert.equal(ago(-3), "now");
  assert.equal(ago(42), "42 s ago");
  assert.equal(ago(90), "2 min ago");
  assert.equal(ago(2 * 3600), "2 h ago");
  assert.equal(ago(3 * 86400), "3 d ago");
  assert.equal(ago(-3600), "in 1 h");
});

test("times are rounded to the nearest unit", () => {
  assert.equal(ago(-(4 * 3600 - 1)), "in 4 h");
  assert.equal(ago(-(44 * 60 + 50)), "in 45 min");
  assert.equal(ago(3 * 3600 + 600), "3 h ago");
  assert.equal(ago(59 * 60 + 45), "1 h ago");
  assert.equal(ago(23 * 3600 + 2400), "1 d ago");
});

test("old times are left to the server's dates", () => {
  assert.equal(ago(8 * 86400), null);
});

test("spans have no limit", () => {
  const span = (seconds) => relative(now - seconds * 1000, now, "span");
  assert.equal(span(3), "3 s");
  assert.equal(span(-2), "0 s");
  assert.equal(span(2 * 3600 + 60), "2 h");
  assert.equal(span(40 * 86400), "40 d");
});

test("what is left ends at nothing", () => {
  const left = (seconds) => relative(now + seconds * 1000, now, "left");
  assert.equal(left(8 * 3600), "8 h");
  assert.equal(left(40 * 86400), "40 d");
  assert.equal(left(5), "5 s");
  assert.equal(left(-2), "0 s");
});

test("the end of something is a time of day here, with the day when that is another", () => {
  const noon = new Date(2026, 10, 27, 12).getTime(); // a Friday
  const until = (...at) => relative(new Date(2026, ...at).getTime(), noon, "until");
  assert.equal(until(10, 27, 18, 28), "18:28");
  assert.equal(until(10, 28, 9, 0), "Sat 09:00");
  assert.equal(until(11, 4, 11, 5), "Fri 4 Dec 11:05");
});

test("due times are never in the past", () => {
  const due = (seconds) => relative(now + seconds * 1000, now, "ahead");
  assert.equal(due(720), "in 12 min");
  assert.equal(due(59), "in 59 s");
  assert.equal(due(8), "in 8 s");
  assert.equal(due(1), "in 1 s");
  assert.equal(due(0), "now");
  assert.equal(due(-90), "now");
  assert.equal(due(8 * 86400), null);
});
