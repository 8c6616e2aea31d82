import assert from "node:assert/strict";
import { test } from "node:test";
import { Drafts, longest, surplus } from "./drafts.js";

const day = 86_400_000;

test("old drafts, and those beyond the bound, are dropped", () => {
  const drafts = Array.from({ length: 53 }, (_, i) => ({ key: `k${i}`, at: 1000 * day - i }));
  assert.deepEqual(surplus(drafts, 1000 * day), ["k50", "k51", "k52"]);
  assert.deepEqual(surplus([{ key: "old", at: 0 }, { key: "new", at: 999 * day }], 1000 * day), ["old"]);
});

// The smallest database that Drafts needs.
function memory() {
  const rows = new Map();
  const request = (result) => {
    const r = { result };
    queueMicrotask(() => r.onsuccess?.());
    return r;
  };
  const store = {
    put: (row) => request(rows.set(row.key, row)), get: (key) => request(rows.get(key)), delete: (key) => request(rows.delete(key)),
    getAll: () => request([...rows.values()]), getAllKeys: () => request([...rows.keys()]),
  };
  return { rows, open: () => request({ transaction: () => ({ objectStore: () => store }) }) };
}

test("work is kept for each person, sandbox and path", async () => {
  const db = memory();
  const mine = new Drafts("ann box-1", db);
  const theirs = new Drafts("bob box-1", db);
  assert.equal(await mine.put("/a", { text: "x", etag: "1" }), true);
  assert.equal((await mine.get("/a")).text, "x");
  assert.equal(await theirs.get("/a"), null);
  assert.deepEqual(await mine.paths(), ["/a"]);
  assert.deepEqual(await theirs.paths(), []);
  await mine.drop("/a");
  assert.equal(await mine.get("/a"), null);
});

test("too much work, or a browser that keeps nothing, is said", async () => {
  assert.equal(await new Drafts("ann", memory()).put("/a", { text: "x".repeat(longest + 1) }), false);
  const broken = new Drafts("ann", { open: () => {
    const r = { error: new Error("no") };
    queueMicrotask(() => r.onerror());
    return r;
  } });
  assert.equal(await broken.put("/a", { text: "x" }), false);
  assert.equal(await broken.get("/a"), null);
  assert.deepEqual(await broken.paths(), []);
});
