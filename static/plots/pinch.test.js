import assert from "node:assert/strict";
import { test } from "node:test";
import { followTouches, stretched } from "./pinch.js";

const view = { since: 1000, until: 1100 };

test("two fingers keep their times under them", () => {
  assert.deepEqual(stretched([25, 75], [0, 100], 100, view), { since: 1025, until: 1075 });
  assert.deepEqual(stretched([0, 100], [25, 75], 100, view), { since: 950, until: 1150 });
  assert.deepEqual(stretched([20, 40], [30, 50], 100, view), { since: 990, until: 1090 });
});

test("fingers that meet or pass zoom nothing", () => {
  assert.equal(stretched([20, 40], [30, 30], 100, view), null);
  assert.equal(stretched([20, 40], [50, 30], 100, view), null);
});

class Element extends EventTarget {
  clientWidth = 100;
  getBoundingClientRect() {
    return { left: 10 };
  }
  touch(kind, pointerId, x, pointerType = "touch") {
    this.dispatchEvent(Object.assign(new Event(kind), { pointerId, pointerType, clientX: x + 10 }));
  }
}

function followed() {
  const element = new Element();
  const seen = { previews: [], done: [], points: [] };
  followTouches(element, { view: () => view, preview: (s) => seen.previews.push(s), done: (s) => seen.done.push(s), point: (x) => seen.points.push(x) });
  return [element, seen];
}

test("a pinch previews, and is done once", () => {
  const [element, seen] = followed();
  element.touch("pointerdown", 1, 25);
  element.touch("pointerdown", 2, 75);
  element.touch("pointermove", 1, 0);
  element.touch("pointermove", 2, 100);
  element.touch("pointerup", 1, 0);
  element.touch("pointerup", 2, 100);
  assert.equal(seen.previews.length, 2);
  assert.deepEqual(seen.done, [{ since: 1025, until: 1075 }]);
  assert.deepEqual(seen.points, []);
});

test("one finger moves the cursor, and the mouse is left to uPlot", () => {
  const [element, seen] = followed();
  element.touch("pointermove", 9, 50, "mouse");
  element.touch("pointerdown", 1, 25);
  element.touch("pointermove", 1, 30);
  element.touch("pointercancel", 1, 30);
  element.touch("pointermove", 1, 40);
  assert.deepEqual(seen.points, [30]);
  assert.deepEqual(seen.done, []);
});
