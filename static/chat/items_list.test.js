import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeElement, fakePage } from "../js/fake_dom.js";

fakePage();
const slices = [];
globalThis.requestIdleCallback = (f) => slices.push(f);
globalThis.requestAnimationFrame = () => 0;
const { Items } = await import("./items_list.js");

const message = (n) => ({ n, kind: "notice", text: `m${n}` });
const run = (n, item) => ({ n, kind: "run", text: "", output: "", data: { item, code: "x", language: "sh", status: "ok" } });
const elements = (items) => items.element.children.flatMap((group) => group.children);
const shown = (items) => elements(items).map((e) => Number(e.dataset.n));
const idle = () => {
  for (let f = slices.shift(); f; f = slices.shift()) f();
};
function list(drawn) {
  return new Items(new FakeElement("div"), new FakeElement("div"), {}, drawn);
}

test("the last items are there at once, and all in their order soon", () => {
  let drawn = 0;
  const items = list(() => drawn++);
  items.load(Array.from({ length: 5000 }, (_, i) => message(i + 1)));
  assert.ok(shown(items).includes(5000) && shown(items).length >= 8 && items.waiting > 0);
  items.show(message(5001));
  idle();
  assert.deepEqual(shown(items), Array.from({ length: 5001 }, (_, i) => i + 1));
  assert.deepEqual([drawn, items.waiting], [1, 0]);
});

test("a page that comes while another is drawn follows it", () => {
  const items = list();
  items.load([message(9)]);
  items.older([message(7), message(8)]);
  items.older([message(5), message(6)]);
  idle();
  assert.deepEqual(shown(items), [5, 6, 7, 8, 9]);
});

test("what waits is forgotten when another conversation is shown", () => {
  const items = list();
  items.load([message(9)]);
  items.older([message(7), message(8)]);
  items.load([message(3)]);
  idle();
  assert.deepEqual(shown(items), [3]);
});

test("a run is below the item whose code it is, also when that comes later", () => {
  const items = list();
  items.load([message(4), run(5, 2), message(6)]);
  assert.deepEqual(shown(items), [4, 5, 6]);
  items.older([message(1), message(2), message(3)]);
  idle();
  assert.deepEqual(shown(items), [1, 2, 5, 3, 4, 6]);
});

test("an item that cannot be drawn does not take the others with it", () => {
  const items = list();
  items.load([message(1), { n: 2, kind: "message", text: "x", data: { files: 5 } }, message(3)]);
  assert.equal(items.size, 3);
  assert.deepEqual(elements(items).map((e) => e.textContent), ["m1", "This cannot be shown.", "m3"]);
});

test("a call that waits for leave does not say that it runs, whichever is drawn first", () => {
  const call = { n: 1, kind: "call", text: "", output: "", open: true, data: { tool: "run_command", title: "Run" } };
  const question = { n: 2, kind: "question", text: "", output: "", open: true, data: { id: "q", title: "Run", text: "ls", choices: [], call: 1 } };
  for (const items of [[call, question], [question, call]]) {
    const l = list();
    l.load([]);
    for (const item of items) l.show(item);
    const state = () => elements(l)[0].children[0].children[0].textContent;
    assert.equal(state(), "Waits for your answer");
    l.show({ ...question, open: false, data: { ...question.data, answer: "allow" } });
    assert.equal(state(), "Running");
  }
});
