import assert from "node:assert/strict";
import { test } from "node:test";
import { changes } from "./port_changes.js";

test("only ports that open after the page are offered, once", () => {
  let state = changes(null, ["3000"]);
  assert.deepEqual([state.show, state.hide], [[], []]);
  state = changes(state.known, ["3000", "8080"]);
  assert.deepEqual([state.show, state.hide], [["8080"], []]);
  state = changes(state.known, ["3000", "8080"]);
  assert.deepEqual([state.show, state.hide], [[], []]);
});

test("a closed port removes its offer, and is offered again when it reopens", () => {
  let state = changes(null, []);
  state = changes(state.known, ["8080"]);
  state = changes(state.known, []);
  assert.deepEqual(state.hide, ["8080"]);
  assert.deepEqual(changes(state.known, ["8080"]).show, ["8080"]);
});
