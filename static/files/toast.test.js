import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeElement, fakePage } from "./fake_dom.js";
import { Toast } from "./toast.js";

fakePage();

// A toast whose button has got the focus from something, as told by the browser.
function focused(from) {
  const w = { back: 0, order: [] };
  const toast = new Toast(() => w.back++);
  toast.show("Deleted", { text: "Undo", act: () => w.order.push("undone") });
  w.undo = toast.element.children.find((c) => c.children[0] === "Undo");
  document.activeElement = w.undo;
  toast.element.dispatchEvent(Object.assign(new Event("focusin"), { relatedTarget: from }));
  w.undo.dispatchEvent(new Event("click"));
  toast.hide();
  return w;
}

test("the button of a toast gives the focus back to what had it", () => {
  const from = Object.assign(new FakeElement("div"), { isConnected: true, checkVisibility: () => true, focus: () => (document.activeElement = from) });
  assert.deepEqual([focused(from).back, document.activeElement], [0, from]);
});

test("and to the tree when that is gone", () => {
  const gone = Object.assign(new FakeElement("div"), { isConnected: false });
  assert.ok(focused(gone).back > 0);
  assert.ok(focused(null).back > 0);
});
