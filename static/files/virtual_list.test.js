import assert from "node:assert/strict";
import { test } from "node:test";
import { reorder, windowOf } from "./virtual_list.js";

test("only visible rows and a few around them are drawn", () => {
  assert.deepEqual(windowOf(0, 240, 24, 10_000), [0, 18]);
  assert.deepEqual(windowOf(24_000, 240, 24, 10_000), [992, 1018]);
  assert.deepEqual(windowOf(239_900, 240, 24, 10_000), [9987, 10_000]);
  assert.deepEqual(windowOf(0, 240, 24, 3), [0, 3]);
  assert.deepEqual(windowOf(5000, 240, 24, 3), [3, 3]);
  assert.deepEqual(windowOf(-50, 240, 24, 0), [0, 0]);
});

// A parent element that records insertions.
function placeOf(names) {
  const place = { list: [], put: [] };
  const element = (name) => ({ name, get nextSibling() { return place.list[place.list.indexOf(this) + 1] ?? null; } });
  const made = new Map();
  place.element = (name) => made.get(name) ?? made.set(name, element(name)).get(name);
  place.insertBefore = (e, before) => {
    place.put.push(e.name);
    place.list = place.list.filter((other) => other !== e);
    place.list.splice(before ? place.list.indexOf(before) : place.list.length, 0, e);
  };
  place.list = [...names].map(place.element);
  Object.defineProperty(place, "firstChild", { get: () => place.list[0] ?? null });
  return place;
}

test("rows are kept in order, moving as few as possible", () => {
  for (const [before, after, put] of [
    ["", "abc", "abc"], ["abc", "abc", ""], ["bc", "abcd", "ad"], ["abd", "abcd", "c"], ["abc", "bca", "a"], ["abcd", "adbc", null], ["abcd", "dcba", null], ["bd", "abcde", "ace"],
  ]) {
    const place = placeOf(before);
    reorder(place, [...after].map(place.element));
    assert.equal(place.list.map((e) => e.name).join(""), after, `${before} to ${after}`);
    if (put !== null) assert.equal(place.put.join(""), put, `${before} to ${after}`);
  }
});
