import assert from "node:assert/strict";
import { test } from "node:test";
import { fakePage } from "./fake_dom.js";

fakePage();
const { place } = await import("./menus.js");

const list = (top, height) => ({ top, height, bottom: top + height });

test("a menu opens down where there is room, and else up", () => {
  assert.deepEqual(place(list(100, 200), 60, 844), { up: false, by: 0 });
  assert.deepEqual(place(list(700, 200), 660, 844), { up: true, by: 0 });
});

test("a menu that fits neither below nor above its button is moved into the window", () => {
  assert.deepEqual(place(list(415, 599), 375, 844), { up: false, by: 178 });
  assert.deepEqual(place(list(300, 828), 260, 844), { up: false, by: 292 }, "as high as the window: its top is not cut");
});
