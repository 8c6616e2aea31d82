import assert from "node:assert/strict";
import { test } from "node:test";
import { fakePage } from "../js/fake_dom.js";

fakePage();
const { nameField } = await import("./name_field.js");

function world(value) {
  const ends = [];
  const { element, input } = nameField(value, (name) => (name === "taken" ? "This name is already taken." : name ? "" : "Enter a name."), (...end) => ends.push(end));
  const told = element.children[1];
  const type = (text) => {
    input.value = text;
    input.dispatchEvent(new Event("input"));
  };
  const press = (key) => input.dispatchEvent(Object.assign(new Event("keydown"), { key }));
  return { ends, input, told, type, press };
}

test("what is wrong with a name is said below the field until the name changes", () => {
  const w = world("old");
  w.type("taken");
  w.press("Enter");
  assert.deepEqual(w.ends, []);
  assert.equal(w.told.hidden, false);
  assert.match(w.told.textContent, /^.*This name is already taken\.$/);
  assert.equal(w.input.getAttribute("aria-invalid"), "true");
  assert.equal(w.input.getAttribute("aria-describedby"), w.told.attributes.id);
  w.type("new");
  assert.equal(w.told.hidden, true);
  assert.equal(w.input.getAttribute("aria-invalid"), null);
  w.press("Enter");
  assert.deepEqual(w.ends, [["new", true]]);
});

test("the name as it was, and Escape, end it without a message", () => {
  const unnamed = world("");
  unnamed.type("");
  unnamed.press("Enter");
  assert.deepEqual(unnamed.ends, [["", true]]);
  const given = world("old");
  given.type("taken");
  given.press("Escape");
  assert.deepEqual(given.ends, [["", true]]);
  assert.equal(given.told.hidden, true);
});
