import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeDatabase, FakeStorage } from "../js/fake_dom.js";
import { Drafts, maxLength, expired } from "./drafts.js";
import { Windows } from "./windows.js";

const day = 86_400_000;

test("old drafts, and those beyond the limit, are deleted", () => {
  const drafts = Array.from({ length: 53 }, (_, i) => ({ key: `k${i}`, at: 1000 * day - i }));
  assert.deepEqual(expired(drafts, 1000 * day), ["k50", "k51", "k52"]);
  assert.deepEqual(expired([{ key: "old", at: 0 }, { key: "new", at: 999 * day }], 1000 * day), ["old"]);
});

test("drafts are stored per user, sandbox and path", async () => {
  const db = new FakeDatabase();
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

// A window, and the others that are open; null when that is unknown.
const win = (me, others = []) => ({ me, others: async () => others && new Set(others) });

test("drafts follow renamed files and folders, also for tabs that were not loaded", async () => {
  const db = new FakeDatabase();
  await new Drafts("ann", db, win("before")).put("/d/a", { text: "x", etag: "1" });
  const drafts = new Drafts("ann", db, win("now"));
  await drafts.put("/d/b", { text: "y", etag: "2" });
  await drafts.put("/dd", { text: "z", etag: "3" });
  await drafts.move("/d", "/e");
  assert.deepEqual((await drafts.paths()).sort(), ["/dd", "/e/a", "/e/b"]);
  await drafts.move("/e/a", "/f");
  assert.equal((await drafts.get("/f")).text, "x");
  assert.equal(await drafts.get("/e/a"), null);
  assert.equal((await drafts.get("/e/b")).text, "y");
});

test("a draft saved under the new name during a rename stays", async () => {
  const db = new FakeDatabase();
  const window = win("one");
  const drafts = new Drafts("ann", db, window);
  await drafts.put("/a", { text: "old" });
  window.others = () => drafts.put("/b", { text: "new" }).then(() => new Set());
  await drafts.move("/a", "/b");
  assert.equal((await drafts.get("/b")).text, "new");
  assert.equal(db.rows.size, 1);
});

test("when a file with a draft replaces another with a draft, both drafts stay", async () => {
  for (const [a, b] of [[10, 20], [20, 10]]) {
    const db = new FakeDatabase();
    const drafts = new Drafts("ann", db, win("one", ["two"]));
    await drafts.put("/a", { text: "of a" });
    await drafts.put("/b", { text: "of b" });
    db.rows.get("ann\n/a\none").at -= a;
    db.rows.get("ann\n/b\none").at -= b;
    await drafts.move("/a", "/b");
    assert.deepEqual(await drafts.paths(), ["/b"]);
    assert.equal((await drafts.get("/b")).text, "of a");
    await drafts.drop("/b");
    assert.equal((await drafts.get("/b")).text, "of b");
    await drafts.drop("/b");
    assert.equal(db.rows.size, 0);
  }
});

test("two windows keep their own drafts", async () => {
  const db = new FakeDatabase();
  const one = new Drafts("ann", db, win("one", ["two"]));
  const two = new Drafts("ann", db, win("two", ["one"]));
  await one.put("/a", { text: "of one" });
  assert.equal(await two.get("/a"), null);
  assert.deepEqual(await two.paths(), []);
  await two.put("/a", { text: "of two" });
  assert.equal((await one.get("/a")).text, "of one");
  await two.drop("/a");
  await two.drop("/a");
  await two.move("/a", "/b");
  assert.equal((await one.get("/a")).text, "of one");
});

test("a window takes over the draft of a closed window", async () => {
  const db = new FakeDatabase();
  await new Drafts("ann", db, win("gone")).put("/a", { text: "x" });
  db.rows.set("ann\n/b", { key: "ann\n/b", text: "as it was kept before windows had names", at: Date.now() });
  const drafts = new Drafts("ann", db, win("now", ["other"]));
  assert.equal((await drafts.get("/a")).text, "x");
  assert.match((await drafts.get("/b")).text, /^as it was/);
  await drafts.drop("/a");
  await drafts.drop("/b");
  assert.equal(db.rows.size, 0);
});

test("without Web Locks a draft of another window is copied, stays there, and is offered once", async () => {
  const db = new FakeDatabase();
  const other = new Drafts("ann", db, win("other", null));
  const drafts = new Drafts("ann", db, win("now", null));
  const third = new Drafts("ann", db, win("third", null));
  await other.put("/a", { text: "x" });
  await other.put("/b", { text: "x" });
  await drafts.get("/a");
  await drafts.get("/b");
  db.rows.set("ann\n/b\nother", { key: "ann\n/b\nother", text: "more", at: 1 });
  await drafts.drop("/a");
  await drafts.drop("/b");
  for (const window of [drafts, third]) {
    assert.deepEqual(await window.paths(), ["/b"]);
    assert.equal(await window.get("/a"), null);
  }
  assert.deepEqual((await other.paths()).sort(), ["/a", "/b"]);
  assert.equal((await other.get("/a")).text, "x");
  assert.equal((await drafts.get("/b")).text, "more", "which was written since");
  await other.put("/a", { text: "y" });
  assert.equal((await third.get("/a")).text, "y");
});

test("a window keeps its name over a reload, and a duplicated window gets another", async () => {
  const store = new FakeStorage();
  const page = new EventTarget();
  const first = new Windows({ store, page });
  assert.notEqual(new Windows({ store }).me, first.me, "a copy of the window");
  page.dispatchEvent(new Event("pagehide"));
  assert.equal(new Windows({ store }).me, first.me, "the same, loaded again");
  assert.equal(await first.others(), null);
  const locks = { request: async () => {}, query: async () => ({ held: [{ name: "window x" }, { name: `window ${first.me}` }, { name: "upload 1" }] }) };
  first.locks = locks;
  assert.deepEqual([...(await first.others())], ["x"]);
});

test("long drafts and missing storage are reported", async () => {
  assert.equal(await new Drafts("ann", new FakeDatabase()).put("/a", { text: "x".repeat(maxLength + 1) }), false);
  const broken = new Drafts("ann", { open: () => {
    const r = { error: new Error("no") };
    queueMicrotask(() => r.onerror());
    return r;
  } });
  assert.equal(await broken.put("/a", { text: "x" }), false);
  assert.equal(await broken.get("/a"), null);
  assert.deepEqual(await broken.paths(), []);
});
