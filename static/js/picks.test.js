import assert from "node:assert/strict";
import test from "node:test";
import { Picks, step } from "./picks.js";

const shown = ["a", "b", "c", "d", "e"];
const picked = (picks) => shown.filter((value) => picks.has(value)).join("");

test("a range goes from the last pick, either way, and takes its state", () => {
  const picks = new Picks();
  picks.set(shown, "d", true, false);
  picks.set(shown, "b", true, true);
  assert.equal(picked(picks), "bcd");
  picks.set(shown, "c", false, true);
  assert.equal(picked(picks), "d");
});

test("a range without an earlier pick is one", () => {
  const picks = new Picks();
  picks.set(shown, "c", true, true);
  assert.equal(picked(picks), "c");
});

test("what does not show any more is not picked", () => {
  const picks = new Picks();
  for (const value of shown) picks.set(shown, value, true, false);
  picks.keep(["b", "e"]);
  assert.equal(picked(picks), "be");
  assert.equal(picks.size, 2);
  picks.clear();
  assert.equal(picks.size, 0);
});

test("keys lead down and up, and stay within the list", () => {
  assert.deepEqual([step("j", -1, 3), step("ArrowUp", -1, 3), step("j", 2, 3), step("k", 0, 3), step("ArrowDown", 0, 3)], [0, 2, 2, 0, 1]);
  assert.equal(step("j", -1, 0), -1);
});
