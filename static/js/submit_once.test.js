import assert from "node:assert/strict";
import { test } from "node:test";

// submit_once.js listens on the document as soon as it is loaded.
const listeners = {};
globalThis.document = { addEventListener: (kind, listener) => (listeners[kind] = listener), querySelectorAll: () => [] };
globalThis.addEventListener = (kind, listener) => (listeners[kind] = listener);
await import("./submit_once.js");

function form(once) {
  const button = { disabled: false, dataset: {}, classList: { add() {}, remove() {} } };
  const made = { dataset: once ? { once: "" } : {}, querySelectorAll: () => [button], closest: () => made };
  return made;
}

function submitted(of) {
  let stopped = false;
  listeners.submit({ target: of, submitter: null, preventDefault: () => (stopped = true), stopPropagation() {} });
  return !stopped;
}

test("the second click of a double click sends nothing", () => {
  const rule = form(true);
  assert.ok(submitted(rule));
  assert.ok(!submitted(rule));
});

test("a form can be sent again once it was answered", () => {
  const rule = form(true);
  submitted(rule);
  listeners["htmx:afterRequest"]({ target: rule, detail: { xhr: null } });
  assert.ok(submitted(rule));
});

test("a form with a question is not sent before that is answered", async () => {
  const risky = form(false);
  risky.dataset.confirm = "Turn off? It ends.";
  const reloaded = new Promise((done) => (globalThis.location = { reload: done })); // this document can show no dialog
  assert.ok(!submitted(risky));
  await reloaded;
});

test("other forms are sent as often as one likes", () => {
  const search = form(false);
  assert.ok(submitted(search));
  assert.ok(submitted(search));
});
