import assert from "node:assert/strict";
import { test } from "node:test";
import { place } from "./limit.js";

const plot = { left: 0, top: 0, width: 100, height: 100 };
const size = { width: 20, height: 10 };

test("a limit's label stands at the right, below the line or above it, and moves left off the figures", () => {
  assert.deepEqual(place(plot, 50, size, 1, () => true), { left: 80, top: 53 });
  assert.deepEqual(place(plot, 50, size, 1, ({ top }) => top < 50), { left: 80, top: 37 });
  assert.deepEqual(place(plot, 50, size, 1, ({ left }) => left < 65), { left: 60, top: 53 });
  assert.deepEqual(place(plot, 50, size, 1, () => false), { left: 80, top: 37 }, "free nowhere");
  assert.deepEqual(place(plot, 5, size, 1, () => false), { left: 80, top: 8 }, "no room above");
  assert.deepEqual(place(plot, 95, size, 1, () => true), { left: 80, top: 82 }, "no room below");
});
