import assert from "node:assert/strict";
import { test } from "node:test";
import { patience } from "./toast.js";

test("a long message is shown for as long as reading it takes", () => {
  assert.equal(patience("It was deleted."), 8000);
  assert.ok(patience("x".repeat(200)) >= 15_000);
});
