import assert from "node:assert/strict";
import { test } from "node:test";
import { fires } from "./fake_window.js";
import { onResume, pageSignal } from "./page_lifecycle.js";

test("leaving the page aborts its requests as if the connection were lost", () => {
  const before = pageSignal();
  fires("pagehide");
  assert.ok(before.aborted && before.reason instanceof TypeError);
  fires("pageshow", { persisted: true });
  assert.ok(!pageSignal().aborted);
});

test("what was lost is retried when the page is back, or the browser online", () => {
  let calls = 0;
  const away = new AbortController();
  onResume(() => calls++, { signal: away.signal });
  fires("pageshow");
  assert.equal(calls, 0, "a page that has just loaded has lost nothing");
  fires("pageshow", { persisted: true });
  fires("online");
  away.abort();
  fires("online");
  assert.equal(calls, 2);
});
