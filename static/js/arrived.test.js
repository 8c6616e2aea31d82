import test from "node:test";
import assert from "node:assert/strict";
import { arrived } from "./arrived.js";

test("the note goes when the last script has arrived, whatever their order", () => {
  for (const order of [["app", "workspace"], ["workspace", "app"]]) {
    let gone = false;
    const note = { dataset: { awaits: "app workspace" }, remove: () => (gone = true) };
    globalThis.document = { getElementById: () => (gone ? null : note) };
    arrived(order[0]);
    assert.equal(gone, false);
    arrived(order[0]);
    assert.equal(gone, false);
    arrived(order[1]);
    assert.equal(gone, true);
    arrived(order[1]); // there is none any more
  }
  delete globalThis.document;
});
