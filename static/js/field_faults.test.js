import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeElement } from "./fake_dom.js";
import { mend } from "./field_faults.js";

test("the messages beside a field go when the field is changed, and its hint stays", () => {
  const field = new FakeElement("input");
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", "memory-fault memory-hint place-fault");
  const gone = [];
  const elements = Object.fromEntries(["memory-fault", "memory-hint", "place-fault"].map((id) => [id, { dataset: {}, hidden: false, remove: () => gone.push(id) }]));
  elements["place-fault"].dataset.fault = "place";
  mend(field, (id) => elements[id]);
  assert.equal(field.getAttribute("aria-invalid"), null);
  assert.deepEqual(gone, ["memory-fault"]);
  assert.equal(elements["place-fault"].hidden, true);
});
