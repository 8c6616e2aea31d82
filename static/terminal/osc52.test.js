import assert from "node:assert/strict";
import { test } from "node:test";
import { decide, decision, excerpt, mostText, requested } from "./osc52.js";

const coded = (text) => Buffer.from(text).toString("base64");

function newStore() {
  const kept = new Map();
  return { getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => kept.set(k, v), removeItem: (k) => kept.delete(k) };
}

test("a program may ask to put text into the clipboard", () => {
  assert.deepEqual(requested(`c;${coded("héllo\nworld")}`), { text: "héllo\nworld" });
  assert.deepEqual(requested(`;${coded("by tmux")}`), { text: "by tmux" });
});

test("the clipboard is never read, and nothing else is written", () => {
  for (const data of ["c;?", ";?", "", "c", "c;", `p;${coded("x")}`, `s0;${coded("x")}`, "c;%%%", "nonsense"]) assert.equal(requested(data), null, data);
});

test("a request is bounded", () => {
  assert.equal(requested(`c;${coded("x".repeat(mostText))}`).text.length, mostText);
  assert.ok(requested(`c;${coded("x".repeat(mostText + 10))}`).over > mostText);
});

test("a sandbox is decided about once", () => {
  const store = newStore();
  assert.equal(decision(store, "a"), "");
  decide(store, "a", "allow");
  decide(store, "b", "never");
  assert.deepEqual([decision(store, "a"), decision(store, "b"), decision(store, "c")], ["allow", "never", ""]);
  decide(store, "a", "never");
  assert.equal(decision(store, "a"), "never");
  for (let i = 0; i < 300; i++) decide(store, `other${i}`, "allow");
  assert.equal(decision(store, "a"), "");
  assert.equal(decision(store, "other299"), "allow");
});

test("a question shows the text as one harmless line", () => {
  assert.equal(excerpt("  one\n\ttwo\u202ethree\x1b[31m "), "one two three [31m");
  assert.equal(excerpt("x".repeat(100)), `${"x".repeat(60)}…`);
});
