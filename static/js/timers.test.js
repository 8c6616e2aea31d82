import assert from "node:assert/strict";
import { test } from "node:test";
import { debounce, throttle } from "./timers.js";

test("throttle runs during constant calls, debounce after them", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let first = 0;
  let last = 0;
  const often = throttle(() => first++, 100);
  const quiet = debounce(() => last++, 100);
  for (let i = 0; i < 10; i++) {
    often();
    quiet();
    t.mock.timers.tick(50);
  }
  assert.equal(first, 5);
  assert.equal(last, 0);
  t.mock.timers.tick(100);
  assert.equal(last, 1);
  quiet();
  quiet.cancel();
  t.mock.timers.tick(200);
  assert.equal(last, 1);
});
