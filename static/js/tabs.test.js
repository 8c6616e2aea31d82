import assert from "node:assert/strict";
import { test } from "node:test";
import { cleanTitle, freshName, keepsTerminals, labelOf, merge, mostTabs, tabNameOf, neighbour } from "./tabs.js";

test("a new tab takes the smallest free number", () => {
  assert.equal(freshName(["main"]), "2");
  assert.equal(freshName(["main", "2", "4"]), "3");
});

test("there is no free name at the limit", () => {
  const all = ["main", ...Array.from({ length: mostTabs }, (_, i) => String(i + 2))];
  assert.equal(freshName(all), null);
});

test("titles from the sandbox become one short line", () => {
  assert.equal(cleanTitle("vim\u001b]0;evil\u0007\nx"), "vim ]0;evil x");
  assert.equal(cleanTitle("a".repeat(100)).length, 60);
  assert.equal(cleanTitle(undefined), "");
});

test("tabs of other windows are added and closed ones dropped, except the first and fresh ones", () => {
  assert.deepEqual(merge(["main", "2", "3"], ["2", "5"], ["3"]), { add: ["5"], drop: [] });
  assert.deepEqual(merge(["main", "2"], ["main"], []), { add: [], drop: ["2"] });
});

test("closing a tab shows the next one, or the one before", () => {
  assert.equal(neighbour(["main", "2", "3"], "2"), "3");
  assert.equal(neighbour(["main", "2"], "2"), "main");
  assert.equal(neighbour(["main"], "main"), null);
});

test("tabs are labelled by number and title", () => {
  assert.equal(labelOf("main"), "Terminal");
  assert.equal(labelOf("3"), "Terminal 3");
  assert.equal(tabNameOf("3", ""), "Terminal 3");
  assert.equal(tabNameOf("main", "bash"), "bash");
  assert.equal(tabNameOf("3", "bash"), "3: bash");
});

test("terminals stay while their sandbox is copied, sleeps and wakes, and go when it is stopped", () => {
  for (const kind of ["terminals", "copied", "frozen", "sleeping", "asleep"]) assert.ok(keepsTerminals(kind, false), kind);
  for (const kind of ["stopped", "failed", "deleted", undefined]) assert.ok(!keepsTerminals(kind, true), kind);
  assert.ok(keepsTerminals("work", true));
  assert.ok(!keepsTerminals("work", false));
});
