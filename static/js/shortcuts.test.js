import assert from "node:assert/strict";
import { test } from "node:test";
import { shortcut } from "./shortcuts.js";

test("keys have their actions", () => {
  assert.deepEqual(shortcut("c", 0), { sheet: "/new" });
  assert.deepEqual(shortcut("/", 0), { focus: "filter" });
  shortcut("g", 1000);
  assert.deepEqual(shortcut("s", 1500), { go: "/" });
  shortcut("g", 1600);
  assert.deepEqual(shortcut("l", 1700), { go: "/logs" });
  shortcut("g", 2000);
  assert.equal(shortcut("s", 3000), null, "too late");
});

test("in a workspace letters have no actions", () => {
  for (const key of ["c", "/", "g", "s", "t"]) assert.equal(shortcut(key, 5000, true), null, key);
  assert.deepEqual(shortcut("?", 5000, true), { dialog: "help" });
});
