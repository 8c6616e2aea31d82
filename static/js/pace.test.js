import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { advance, late, leftText, position } from "./pace.js";

test("a pace counts as the server does", () => {
  for (const c of JSON.parse(readFileSync(new URL("./pace_cases.json", import.meta.url)))) {
    const spent = c.running ? Math.max(c.spent, 0) : -1;
    assert.ok(Math.abs(position(c, spent) - c.at) < 0.001, JSON.stringify(c));
    assert.equal(late(c, spent), c.late, JSON.stringify(c));
  }
});

test("what is left is said in words, and whether it is known", () => {
  const pace = { total: 200, done: 0, step: 100, part: 0, measured: true };
  assert.equal(leftText(pace, 10), "about 3 min left");
  assert.equal(leftText({ ...pace, done: 150, step: 50 }, 10), "about 40 s left");
  assert.equal(leftText({ ...pace, measured: false, done: 150, step: 50 }, 10), "about 40 s left (estimate)");
  assert.equal(leftText({ ...pace, done: 150, step: 50 }, 47), "a few seconds left");
  assert.equal(leftText({ ...pace, done: 199.5, step: 0.5 }, 0.2), "almost done");
  assert.equal(leftText(pace, 200), "longer than last time");
  assert.equal(leftText({ ...pace, measured: false }, 200), "longer than estimated");
  assert.equal(leftText(pace, -1), "waiting for another build");
  assert.equal(leftText({ ...pace, total: 7300, step: 7300 }, 0), "about 2 h left");
});

test("a bar moves on between two words of the server", () => {
  const bar = { value: 0 };
  const left = { textContent: "" };
  const element = {
    dataset: { total: "100", done: "20", step: "60", spent: "5", part: "0", measured: "" },
    querySelector: (selector) => (selector === "progress" ? bar : left),
  };
  advance(element, 1000);
  assert.equal(bar.value, 0.25);
  advance(element, 1010);
  assert.equal(bar.value, 0.35);
  assert.equal(left.textContent, "about 1 min left");
});
