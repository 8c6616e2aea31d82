import assert from "node:assert/strict";
import { test } from "node:test";
import { answer, foreign, pauses, takes } from "./patience.js";

const page = { mode: "navigate", destination: "document", method: "GET", url: "https://box.example.com/templates?x=1", signal: { aborted: false } };

// line answers the attempts in turn: an Error is thrown. It says what was asked and how long was waited.
function line(...turns) {
  const log = [];
  const ask = async (request) => {
    assert.equal(request, page);
    const turn = turns.shift();
    log.push("ask");
    if (turn instanceof Error) throw turn;
    return turn;
  };
  return { log, ask, wait: async (ms) => void log.push(ms) };
}

test("only scripts and navigations that change nothing are taken, and no downloads", () => {
  assert.ok(takes(page));
  assert.ok(takes({ ...page, mode: "cors", destination: "script", url: "https://box.example.com/static/chunk-X.js" }));
  for (const other of [{ method: "POST" }, { method: "HEAD" }, { mode: "cors" }, { mode: "no-cors" }, { mode: "websocket" },
    { url: "https://box.example.com/logs/download?x" }, { url: "https://box.example.com/sandboxes/lab/files?path=a" }]) {
    assert.ok(!takes({ ...page, ...other }), JSON.stringify(other));
  }
});

test("an answer is given at once, the browser's own first", async () => {
  const l = line("asked");
  assert.equal(await answer(page, Promise.resolve("preloaded"), l.ask, l.wait), "preloaded");
  assert.deepEqual(l.log, []);
  assert.equal(await answer(page, Promise.resolve(undefined), l.ask, l.wait), "asked");
  assert.deepEqual(l.log, ["ask"]);
});

test("what the network took away is asked for again", async () => {
  const l = line(new TypeError("network"), "page");
  assert.equal(await answer(page, Promise.reject(new TypeError("network changed")), l.ask, l.wait), "page");
  assert.deepEqual(l.log, [pauses[0], "ask", pauses[1], "ask"]);
});

test("after the last attempt the failure is the browser's", async () => {
  const failures = Array.from({ length: pauses.length + 1 }, (_, i) => new TypeError(`attempt ${i}`));
  const l = line(...failures);
  await assert.rejects(answer(page, undefined, l.ask, l.wait), failures.at(-1));
  assert.equal(l.log.filter((entry) => entry === "ask").length, pauses.length + 1);
  assert.ok(pauses.reduce((a, b) => a + b) <= 3000);
});

test("who has gone elsewhere is waited for no more", async () => {
  const l = line(new DOMException("gone", "AbortError"));
  await assert.rejects(answer({ ...page, signal: { aborted: true } }, undefined, async () => { throw new DOMException("gone", "AbortError"); }, l.wait));
  assert.deepEqual(l.log, []);
});

test("an answer of another server than sandboxd is recognised", () => {
  const headers = (own) => ({ has: (name) => own && name === "X-Request-Id" });
  assert.ok(foreign({ type: "basic", headers: headers(false) }));
  assert.ok(!foreign({ type: "basic", headers: headers(true) }));
  assert.ok(!foreign({ type: "opaqueredirect", headers: headers(false) }));
});
