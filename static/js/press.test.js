import assert from "node:assert/strict";
import { test } from "node:test";
import { press } from "./press.js";

test("letters lead where they say", () => {
  assert.deepEqual(press("c", 0), { sheet: "/new" });
  assert.deepEqual(press("/", 0), { focus: "filter" });
  press("g", 1000);
  assert.deepEqual(press("s", 1500), { go: "/" });
  press("g", 2000);
  assert.equal(press("s", 3000), null, "too late");
});

test("in a workspace no letter leads anywhere", () => {
  for (const key of ["c", "/", "g", "s", "t"]) assert.equal(press(key, 5000, true), null, key);
  assert.deepEqual(press("?", 5000, true), { dialog: "help" });
});
