import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeStorage } from "../js/fake_dom.js";
import { KeptTabs } from "./kept_tabs.js";

test("a preview that crashed the page is reported once", () => {
  const store = new FakeStorage();
  const page = new KeptTabs(store, "ann box");
  page.write({ tabs: ["/a"], shown: "/a", front: true });
  page.rendering("/a");
  const next = new KeptTabs(store, "ann box");
  assert.deepEqual(next.read(), { tabs: ["/a"], shown: "/a", front: true });
  assert.equal(next.crashed(), "/a");
  assert.equal(next.crashed(), "");
  next.rendering("/b");
  next.rendering("/a");
  next.rendered("/b");
  assert.equal(store.getItem("rendering ann box"), '"/a"', "one that is shown does not speak for another");
  next.rendered("/a");
  assert.equal(new KeptTabs(store, "ann box").crashed(), "");
});

test("missing storage is harmless", () => {
  const page = new KeptTabs({ getItem: () => { throw new Error("no"); }, setItem: () => { throw new Error("no"); } }, "ann");
  page.write({});
  page.rendering("/a");
  page.rendered();
  assert.deepEqual([page.read(), page.crashed()], [{}, ""]);
});
