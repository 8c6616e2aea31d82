import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { fakePage } from "../js/fake_dom.js";

fakePage();
const asked = { idle: [], frame: [], timeout: [] };
globalThis.requestIdleCallback = (f) => asked.idle.push(f);
globalThis.requestAnimationFrame = (f) => asked.frame.push(f);
let now = 0;
globalThis.performance = { now: () => now };
const { hurry, later } = await import("./slices.js");

// runs does what was asked for, until there is no more of it, and returns how many slices that took.
function runs(kind) {
  let slices = 0;
  for (let f = asked[kind].shift(); f; f = asked[kind].shift()) {
    slices++;
    f();
  }
  return slices;
}

// work is n steps of ms each; done has its name for each step.
function work(name, n, ms, done) {
  let left = n;
  return () => {
    now += ms;
    done.push(name);
    return --left > 0;
  };
}

beforeEach(() => (now += 1000));

test("a slice takes 8 ms while the browser is idle", () => {
  const done = [];
  later(work("a", 10, 3, done));
  assert.deepEqual([done.length, asked.idle.length, asked.frame.length], [0, 1, 0]);
  assert.equal(runs("idle"), 4);
  assert.equal(done.length, 10);
});

test("while the person scrolls there is a slice in each frame, and none while the page is hidden", () => {
  const done = [];
  hurry();
  later(work("a", 6, 3, done));
  assert.deepEqual([asked.idle.length, asked.frame.length], [0, 1]);
  asked.frame.shift()();
  assert.deepEqual([done.length, asked.idle.length, asked.frame.length], [3, 0, 1]);
  now += 300; // it is over
  asked.frame.shift()();
  assert.deepEqual([done.length, asked.idle.length, asked.frame.length], [6, 0, 0]);
  hurry();
  document.hidden = true;
  later(work("b", 1, 1, done));
  document.hidden = false;
  assert.deepEqual([asked.idle.length, asked.frame.length], [1, 0]);
  runs("idle");
});

test("steps take turns: a text that grows does not wait for all that is before it", () => {
  const done = [];
  later(work("page", 50, 1, done));
  later(work("text", 2, 1, done));
  runs("idle");
  assert.ok(done.lastIndexOf("text") < 5, done.join(" "));
  assert.equal(done.length, 52);
});

test("a step that fails stops no other", (t) => {
  const done = [];
  const thrown = [];
  t.mock.method(globalThis, "setTimeout", (f) => assert.throws(f, (err) => thrown.push(err.message) > 0));
  later(() => {
    throw new Error("broken");
  });
  later(work("a", 2, 1, done));
  runs("idle");
  assert.deepEqual([done, thrown], [["a", "a"], ["broken"]]);
});
