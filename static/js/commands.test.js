import assert from "node:assert/strict";
import { test } from "node:test";
import { keysOf, unique } from "./commands.js";

test("keys are written as people write them", () => {
  assert.equal(keysOf("Control+B", false), "Ctrl+B");
  assert.equal(keysOf("Control+K Meta+K", false), "Ctrl+K");
  assert.equal(keysOf("Control+K Meta+K", true), "⌘K");
  assert.equal(keysOf("c", false), "C");
  assert.equal(keysOf(null, false), "");
});

test("what is on the page twice is listed once", () => {
  const list = [{ text: "Logs", to: "/logs", group: "Go to" }, { text: "logs", to: "/logs", group: "Sandbox" }, { text: "Logs", to: "/logs?sandbox=a", group: "Sandbox" }, { text: "Stop", to: "", group: "Sandbox" }, { text: "Stop", to: "", group: "Sandbox" }];
  assert.deepEqual(unique(list).map((e) => e.to), ["/logs", "/logs?sandbox=a", ""]);
});
