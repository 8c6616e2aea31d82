import test from "node:test";
import assert from "node:assert/strict";
import { loaded } from "./loaded.js";

test("the note is removed after the last script, in any order", () => {
  for (const order of [["app", "workspace"], ["workspace", "app"]]) {
    let gone = false;
    const note = { dataset: { awaits: "app workspace" }, remove: () => (gone = true) };
    globalThis.document = { getElementById: () => (gone ? null : note) };
    loaded(order[0]);
    assert.equal(gone, false);
    loaded(order[0]);
    assert.equal(gone, false);
    loaded(order[1]);
    assert.equal(gone, true);
    loaded(order[1]); // already removed
  }
  delete globalThis.document;
});
