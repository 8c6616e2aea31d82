import assert from "node:assert/strict";
import { test } from "node:test";
import { isWrong } from "./webgl.js";

test("a canvas has the pixels of its place", () => {
  const canvas = (width, height) => ({ width, height, clientWidth: 360, clientHeight: 663 });
  assert.equal(isWrong(canvas(360, 663), 1), false);
  assert.equal(isWrong(canvas(720, 1326), 2), false);
  assert.equal(isWrong(canvas(541, 994), 1.5), false, "rounded");
  assert.equal(isWrong(canvas(360, 663), 2), true, "the scale is emulated");
  assert.equal(isWrong(canvas(720, 663), 2), true);
  assert.equal(isWrong({ width: 720, height: 1326, clientWidth: 0, clientHeight: 0 }, 2), false, "hidden");
});
