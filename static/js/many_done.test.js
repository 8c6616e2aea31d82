import assert from "node:assert/strict";
import { test } from "node:test";
import { end } from "./many_done.js";

test("it says that sandboxes were deleted once the last one is gone", () => {
  const title = { textContent: "2 sandboxes are being deleted." };
  const notice = { dataset: { waits: "sandbox-1 sandbox-2", ended: "2 sandboxes were deleted." }, querySelector: () => title };
  const done = { querySelector: () => ("waits" in notice.dataset ? notice : null) };
  const rows = new Set(["sandbox-1", "sandbox-2", "sandbox-3"]);
  const shows = (id) => rows.has(id);
  assert.equal(end(done, shows), false);
  rows.delete("sandbox-2");
  assert.equal(end(done, shows), false);
  assert.equal(title.textContent, "2 sandboxes are being deleted.");
  rows.delete("sandbox-1");
  assert.equal(end(done, shows), true);
  assert.equal(title.textContent, "2 sandboxes were deleted.");
  assert.equal(end(done, shows), false); // said once
});
