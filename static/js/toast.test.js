import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeElement, fakePage } from "./fake_dom.js";
import { shownFor, hideToast, toast } from "./toast.js";

fakePage();
const element = new FakeElement("div");
document.getElementById = (id) => (id === "toast" ? element : null);

test("a toast stays as long as reading it takes", () => {
  assert.equal(shownFor("It was deleted."), 8000);
  assert.equal(shownFor("It was deleted.", {}), 11_000);
  assert.ok(shownFor("x".repeat(200)) >= 15_000);
});

// act shows a toast, moves the focus from an element to its action, and presses that. It returns the calls of refocus.
function act(from) {
  let calls = 0;
  toast("Deleted", { action: { text: "Undo", act() {} }, refocus: () => calls++ });
  const undo = element.children.find((c) => c.children[0] === "Undo");
  document.activeElement = undo;
  element.dispatchEvent(Object.assign(new Event("focusin"), { relatedTarget: from }));
  undo.dispatchEvent(new Event("click"));
  hideToast();
  return calls;
}

test("the action of a toast returns the focus to where it was", () => {
  const from = Object.assign(new FakeElement("div"), { isConnected: true, checkVisibility: () => true, focus: () => (document.activeElement = from) });
  assert.deepEqual([act(from), document.activeElement], [0, from]);
});

test("the action of a toast focuses the fallback when the element is gone", () => {
  assert.ok(act(Object.assign(new FakeElement("div"), { isConnected: false })) > 0);
  assert.ok(act(null) > 0);
});
