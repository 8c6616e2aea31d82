import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeElement, fakePage } from "../js/fake_dom.js";

fakePage();
FakeElement.prototype.insertBefore = function (element, before) {
  this.children.splice(before ? this.children.indexOf(before) : this.children.length, 0, element);
};
const { FindView } = await import("./find_view.js");

const found = async (...paths) => {
  const results = paths.map((path) => ({ path, type: "file", line: 1, column: 1, before: "", match: "x", after: "" }));
  const view = new FindView({ home: "/home", whole: true, files: { async *search() { yield* [...results, { end: true }]; } } });
  view.mode = "names";
  view.folder = "/home";
  view.field.value = "x";
  for (const b of [view.case, view.regex]) b.setAttribute("aria-pressed", "false");
  await view.run();
  return view.results.children.map((e) => e.textContent);
};

test("results are in the order of paths, however they arrive", async () => {
  const paths = ["/home/b.txt", "/home/a/z.txt", "/home/a.txt", "/home/a/b/c.txt", "/home/c.txt"];
  const names = await found(...paths);
  assert.deepEqual(names, await found(...paths.toReversed()));
  assert.deepEqual(names.map((n) => n.slice(0, 1)), ["c", "z", "a", "b", "c"]);
});
