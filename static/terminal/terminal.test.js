import assert from "node:assert/strict";
import { test } from "node:test";
import { delayAfter } from "../js/reconnect.js";
import { isFinal } from "./connection.js";
import { OutputQueue } from "./output_queue.js";
import { safeLink } from "./links.js";
import { shownAs, textOf, waits } from "./notice.js";
import * as protocol from "./protocol.js";

const text = (bytes) => new TextDecoder().decode(bytes);

test("messages follow ttyd's protocol", () => {
  assert.deepEqual(JSON.parse(text(protocol.hello(120, 32, 5))), { AuthToken: "", columns: 120, rows: 32, window: 5 });
  assert.equal(text(protocol.watched()), "5");
  assert.equal(text(protocol.resize(80, 24)), '1{"columns":80,"rows":24}');
  assert.deepEqual([...protocol.input("é\r")].map(text), ["0é\r"]);
  assert.deepEqual([...protocol.bytesOf("\x1b[M\xff")], [0x1b, 0x5b, 0x4d, 0xff]);
});

test("a large paste is split without loss", () => {
  const parts = [...protocol.input("世".repeat(20_000))];
  assert.ok(parts.length > 3 && parts.every((p) => p.length <= 16 * 1024 + 1 && p[0] === 0x30));
  assert.equal(text(Buffer.concat(parts.map((p) => p.subarray(1)))), "世".repeat(20_000));
});

test("only output messages reach the screen", () => {
  assert.equal(text(protocol.output(Buffer.from("0hi"))), "hi");
  for (const m of ["1title", '2{"a":1}', "", "x"]) assert.equal(protocol.output(new Uint8Array(Buffer.from(m)).buffer), null);
});

test("output is bounded in flight, complete, and acknowledged", () => {
  const working = [];
  let drawn = "";
  let acked = 0;
  const queue = new OutputQueue((bytes, done) => working.push({ bytes, done }), (n) => (acked += n));
  const all = "0123456789".repeat(500_000);
  for (let at = 0; at < all.length; at += 70_001) queue.push(Buffer.from(all.slice(at, at + 70_001)));
  while (working.length > 0) {
    assert.ok(working.reduce((sum, w) => sum + w.bytes.length, 0) <= (256 + 64) * 1024);
    const { bytes, done } = working.shift();
    drawn += text(bytes);
    done();
  }
  assert.equal(drawn, all);
  assert.equal(acked, all.length);
  assert.equal(queue.waiting, 0);
});

test("output of an earlier connection is not acknowledged to the next", () => {
  const working = [];
  let acked = 0;
  const queue = new OutputQueue((bytes, done) => working.push(done), (n) => (acked += n));
  queue.push(Buffer.from("old"));
  queue.restart();
  queue.push(Buffer.from("fresh"));
  for (const done of working) done();
  assert.equal(acked, 5);
});

test("retries back off with jitter, up to a bound", () => {
  assert.equal(delayAfter(0, { chance: 1 }), 250);
  assert.equal(delayAfter(3, { chance: 1 }), 2000);
  assert.equal(delayAfter(3, { chance: 0 }), 1000);
  assert.equal(delayAfter(1000, { chance: 1 }), 10_000);
});

test("final close codes stay closed, others reconnect", () => {
  for (const code of [1000, 1008, 1011, 4001, 4002, 4003, 4004]) assert.ok(isFinal(code), code);
  for (const code of [1001, 1005, 1006, 1012, 1013]) assert.ok(!isFinal(code), code);
});

test("the notice says why, and what to do", () => {
  assert.equal(textOf("closed", "The shell has ended."), "Disconnected: The shell has ended. Press Enter to connect again.");
  assert.equal(textOf("reconnecting", ""), "Reconnecting…");
  assert.equal(textOf("waking", ""), "Waking…");
  assert.equal(textOf("deleted", ""), "This sandbox was deleted.");
  assert.equal(textOf("asleep", ""), "Asleep. Press Enter or click to wake.");
  assert.equal(textOf("asleep", "The host is full."), "Still asleep: The host is full. Press Enter or click to try again.");
  assert.equal(textOf("connected", ""), "");
});

test("frozen differs from asleep, and touch screens are told to tap", () => {
  assert.equal(textOf("frozen", ""), "Frozen. Its programs are paused. Press Enter or click to resume.");
  assert.equal(textOf("frozen", "", true), "Frozen. Its programs are paused. Tap to resume.");
  assert.equal(textOf("frozen", "The host is full."), "Still frozen: The host is full. Press Enter or click to try again.");
  assert.equal(textOf("asleep", "", true), "Asleep. Tap to wake.");
  assert.equal(textOf("closed", "The shell has ended.", true), "Disconnected: The shell has ended. Tap Connect to connect again.");
});

test("an unavailable terminal is shown as asleep or frozen", () => {
  assert.equal(shownAs("asleep", "frozen"), "frozen");
  assert.equal(shownAs("asleep", "asleep"), "asleep");
  assert.equal(shownAs("asleep", ""), "asleep");
  for (const state of ["connected", "waking", "reconnecting", "closed"]) assert.equal(shownAs(state, "frozen"), state);
});

test("only sleeping and closed terminals wait for the user", () => {
  const states = ["connecting", "connected", "reconnecting", "waking", "asleep", "frozen", "closed", "deleted"];
  assert.deepEqual(states.filter(waits), ["asleep", "frozen", "closed"]);
});

test("only web addresses without credentials are links", () => {
  assert.equal(safeLink("https://example.com/a?b"), "https://example.com/a?b");
  for (const bad of ["javascript:alert(1)", "file:///etc/passwd", "https://bank.com@evil.com/", "nothing", "data:text/html,x"]) assert.equal(safeLink(bad), null, bad);
});
