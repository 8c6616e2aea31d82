import assert from "node:assert/strict";
import { test } from "node:test";

const page = new EventTarget();
globalThis.addEventListener = page.addEventListener.bind(page);
const { onReturn, whileHere } = await import("./page_life.js");
const shows = (kind, more = {}) => page.dispatchEvent(Object.assign(new Event(kind), more));

test("what a page waits for ends when the page is left, as if the connection were lost", () => {
  const before = whileHere();
  shows("pagehide");
  assert.ok(before.aborted && before.reason instanceof TypeError);
  shows("pageshow", { persisted: true });
  assert.ok(!whileHere().aborted);
});

test("what was lost is tried again when the page is back, or the browser online", () => {
  let calls = 0;
  const away = new AbortController();
  onReturn(() => calls++, { signal: away.signal, page });
  shows("pageshow");
  assert.equal(calls, 0, "a page that is only loaded has lost nothing");
  shows("pageshow", { persisted: true });
  shows("online");
  away.abort();
  shows("online");
  assert.equal(calls, 2);
});
