import assert from "node:assert/strict";
import { test } from "node:test";
import { windowOf } from "./virtual.js";

test("only the rows that can be seen, and a few around them, are drawn", () => {
  assert.deepEqual(windowOf(0, 240, 24, 10_000), [0, 18]);
  assert.deepEqual(windowOf(24_000, 240, 24, 10_000), [992, 1018]);
  assert.deepEqual(windowOf(239_900, 240, 24, 10_000), [9987, 10_000]);
  assert.deepEqual(windowOf(0, 240, 24, 3), [0, 3]);
  assert.deepEqual(windowOf(5000, 240, 24, 3), [3, 3]);
  assert.deepEqual(windowOf(-50, 240, 24, 0), [0, 0]);
});
