import assert from "node:assert/strict";
import { test } from "node:test";
import { Preferences } from "./preferences.js";

// Windows of one browser, with timers that the test fires.
function windows(n, answers = []) {
  const channels = Array.from({ length: n }, () => new EventTarget());
  const w = { sent: [], waiting: [] };
  for (const c of channels) c.postMessage = (data) => channels.filter((o) => o !== c).forEach((o) => o.dispatchEvent(Object.assign(new Event("message"), { data: structuredClone(data) })));
  const put = async (body) => {
    w.sent.push(JSON.parse(body));
    const next = answers.shift();
    if (next instanceof Error) throw next;
    return next ?? { ok: true, status: 204 };
  };
  w.all = channels.map((channel) => new Preferences('{"front":"files"}', { channel, put, wait: (act, ms) => w.waiting.push([act, ms]) }));
  w.elapse = async () => {
    for (const [act] of w.waiting.splice(0)) await act();
  };
  return w;
}

test("a window does not overwrite what another has changed", async () => {
  const w = windows(2);
  const [one, two] = w.all;
  one.set("sizes", { tree: 260 });
  await w.elapse();
  two.set("copy_on_select", true);
  await w.elapse();
  assert.deepEqual(w.sent.at(-1), { front: "files", sizes: { tree: 260 }, copy_on_select: true });
  assert.equal(one.get("copy_on_select", false), true);
  one.set("copy_on_select", true);
  await w.elapse();
  assert.equal(w.sent.length, 2, "what is so already is not written");
});

test("a failed save is logged and retried once", async (t) => {
  const warned = t.mock.method(console, "warn", () => {});
  const w = windows(1, [{ ok: false, status: 503 }, new TypeError("away"), { ok: false, status: 503 }]);
  const [one] = w.all;
  one.set("front", "terminal");
  await w.elapse();
  await w.elapse();
  await w.elapse();
  assert.equal(w.sent.length, 2);
  assert.equal(warned.mock.callCount(), 2);
  one.set("front", "files");
  await w.elapse();
  assert.deepEqual(w.waiting.map(([, ms]) => ms), [3000]);
  one.flush();
  assert.equal(w.sent.length, 4, "a page that is left does not wait for it");
});
