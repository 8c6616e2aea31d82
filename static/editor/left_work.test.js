import assert from "node:assert/strict";
import { test } from "node:test";
import { fakePage } from "../js/fake_dom.js";

fakePage();
let leaves = null;
globalThis.addEventListener = (kind, act) => (leaves = kind === "beforeunload" ? act : leaves);
const { listOf } = await import("./left_work.js");

const swap = (still) => document.dispatchEvent(Object.assign(new Event("htmx:partialBeforeSwap"), { detail: { fragment: { querySelector: () => still } } }));
const asks = () => {
  let asked = false;
  leaves({ preventDefault: () => (asked = true) });
  return asked;
};

test("unsaved work of a deleted sandbox is listed, and leaving the page asks until all is copied or downloaded", async () => {
  const work = [{ path: "/home/notes.md", text: "mine" }, { path: "/home/two.txt", text: "more" }];
  const lists = [];
  const panel = { querySelector: (what) => (what === ".buttons" ? { before: (list) => lists.push(list) } : lists[0]) };
  let editor = { unsaved: async () => work };
  document.querySelector = (what) => (what === "sandbox-editor" ? editor : panel);
  swap(null);
  await null;
  assert.equal(lists.length, 0, "it sleeps");
  swap({});
  editor = null;
  swap({});
  await new Promise(setImmediate);
  assert.equal(lists.length, 1);
  assert.match(lists[0].textContent, /2 files.*notes\.md.*two\.txt/);
  assert.equal(asks(), true);
  for (const item of work) item.taken = true;
  assert.equal(asks(), false);
});

test("work that was copied or downloaded is taken", async () => {
  const out = [];
  const work = [{ path: "/home/notes.md", text: "mine" }, { path: "/home/two.txt", text: "more" }];
  const list = listOf(work, { copied: async (text) => out.push(text) > 0, saved: (item) => out.push(item.path) });
  const [first, second] = list.children[1].children;
  Object.defineProperty(first.children[1], "lastChild", { value: {} });
  first.children[1].dispatchEvent(new Event("click"));
  second.children[2].dispatchEvent(new Event("click"));
  await null;
  assert.deepEqual(out, ["mine", "/home/two.txt"]);
  assert.deepEqual(work.map((item) => item.taken), [true, true]);
});
