import assert from "node:assert/strict";
import { test } from "node:test";
import { keysOf, rank, unique } from "./commands.js";

test("keys are written as people write them", () => {
  assert.equal(keysOf("Control+B"), "Ctrl+B");
  assert.equal(keysOf("Control+K Meta+K"), "Ctrl+K");
  assert.equal(keysOf("Control+K Meta+K", { mac: true, terminal: true }), "⌘K");
  assert.equal(keysOf("c"), "C");
  assert.equal(keysOf(null), "");
  assert.equal(keysOf("Control+B", { terminal: true }), "Ctrl+Shift+B");
  assert.equal(keysOf("Control+`", { terminal: true }), "Ctrl+`");
});

test("what is on the page twice is listed once", () => {
  const list = [{ text: "Logs", to: "/logs", group: "Go to" }, { text: "logs", to: "/logs", group: "Sandbox" }, { text: "Logs", to: "/logs?sandbox=a", group: "Sandbox" }, { text: "Stop", to: "", group: "Sandbox" }, { text: "Stop", to: "", group: "Sandbox" }];
  assert.deepEqual(unique(list).map((e) => e.to), ["/logs", "/logs?sandbox=a", ""]);
});

test("a command is found by its own text before all others, whatever their heading is", () => {
  const sandboxes = ["quick-pine", "demo-lab", "sandboxes-of-ann"].map((text) => ({ text, hint: "Base", group: "Sandboxes" }));
  const list = [...sandboxes, { text: "Sandboxes", hint: "", group: "Go to" }, { text: "Logs", hint: "", group: "Go to" }];
  const found = rank(list, "sandboxes", 100);
  assert.equal(found[0].command.group, "Go to");
  assert.equal(found[1].command.text, "sandboxes-of-ann");
  assert.equal(found.length, 4);
  assert.deepEqual(rank(list, "log", 100).map((r) => [r.command.text, r.marks]), [["Logs", [0, 1, 2]]]);
  assert.deepEqual(rank(list, "base", 2).map((r) => r.command.text), ["quick-pine", "demo-lab"]);
});
