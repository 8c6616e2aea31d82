import assert from "node:assert/strict";
import { test } from "node:test";
import { retype, slug } from "./new_sandbox.js";

test("a text becomes a name", () => {
  for (const [text, name] of [
    ["ML Experiments", "ml-experiments"], ["  Über--Größe! ", "uber-grosse"], ["2nd try", "nd-try"], ["a_b.c", "a-b-c"], ["日本", ""], ["lab", "lab"],
    ["x".repeat(50), "x".repeat(40)], [`${"x".repeat(39)} y`, "x".repeat(39)],
  ]) assert.equal(slug(text, 40), name, text);
});

test("a name that is being typed may end with a hyphen", () => {
  assert.equal(slug("my ", 40, true), "my-");
  assert.equal(slug("my-", 40, true), "my-");
  assert.equal(slug("my-", 40), "my");
});

test("the caret stays where one types", () => {
  let caret = 0;
  const input = { dataset: { slug: "40" }, value: "my Lab", selectionStart: 3, setSelectionRange: (at) => (caret = at) };
  retype(input, true);
  assert.equal(input.value, "my-lab");
  assert.equal(caret, 3);
  Object.assign(input, { value: "É-lab", selectionStart: 1 });
  retype(input, true);
  assert.equal(input.value, "e-lab");
  assert.equal(caret, 1);
});
