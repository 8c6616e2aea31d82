import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { fires, last, settled, sockets } from "../js/fake_window.js";
import { addressOf, Connection } from "./connection.js";

let answer; // to the request without an upgrade
const asked = []; // its options
const connections = [];

beforeEach(() => {
  sockets.length = 0;
  answer = { type: "basic", status: 426, json: async () => ({}) };
  globalThis.fetch = async (url, how) => (asked.push(how), answer);
  mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
});

afterEach(() => {
  mock.timers.reset();
  for (const connection of connections.splice(0)) connection.dispose();
});

function open() {
  const states = [];
  const rests = [];
  const doubts = [];
  const state = (now, reason) => states.push(reason ? `${now}: ${reason}` : now);
  const connection = new Connection("ws://box/ws", { open() {}, message() {}, state, rest: (how) => rests.push(how), doubt: (text) => doubts.push(text) });
  connections.push(connection);
  return { connection, states, rests, doubts };
}

const says = (text) => last().says(new TextEncoder().encode(text).buffer);
const wakes = () => !last().url.searchParams.has("wake");

// asleep returns a terminal whose sandbox has fallen asleep.
function asleep() {
  const o = open();
  o.connection.connect();
  last().opens();
  says("0$ ");
  last().ends(4003, "The sandbox fell asleep. Opening the terminal wakes it.");
  return o;
}

test("only requested connections wake", () => {
  assert.equal(addressOf("ws://box/ws", false), "ws://box/ws?wake=0");
  assert.equal(addressOf("ws://box/ws", true), "ws://box/ws");
});

test("opening the page and reconnecting wake nothing", async () => {
  const { connection } = open();
  connection.connect();
  assert.ok(!wakes());
  last().opens();
  last().ends(1012); // sandboxd was restarted
  await settled();
  mock.timers.tick(10_000);
  assert.equal(sockets.length, 2);
  assert.ok(!wakes());
});

test("a terminal whose sandbox fell asleep does not reconnect by itself", async () => {
  const { connection, states } = asleep();
  await settled();
  mock.timers.tick(24 * 60 * 60_000);
  fires("online");
  document.dispatchEvent(new Event("visibilitychange"));
  assert.equal(sockets.length, 1);
  assert.deepEqual(states, ["connecting", "connected", "asleep"]);
  assert.equal(connection.send("0x"), false);
});

test("waking shows its progress and waits for a slow start", async () => {
  const { connection, states } = asleep();
  connection.wake();
  assert.ok(wakes());
  mock.timers.tick(60_000); // a slow start: the page waits as long as sandboxd does
  last().opens();
  says("0$ ");
  assert.deepEqual(states.slice(2), ["asleep", "waking", "connected"]);
  last().ends(4003, "The sandbox fell asleep. Opening the terminal wakes it.");
  assert.equal(states.at(-1), "asleep");
});

test("a failed wake shows the reason and waits for the user", async () => {
  const { connection, states } = asleep();
  connection.wake();
  last().opens();
  last().ends(4003, "The host is full.");
  await settled();
  mock.timers.tick(60 * 60_000);
  assert.equal(sockets.length, 2);
  assert.equal(states.at(-1), "asleep: The host is full.");
});

test("a terminal reconnects without waking after something else woke the sandbox", () => {
  const { connection, states } = asleep();
  connection.connect();
  assert.ok(!wakes());
  last().opens();
  says("0$ ");
  assert.equal(states.at(-1), "connected");
});

test("a page that finds the sandbox asleep shows no error", async () => {
  const { connection, states } = open();
  connection.connect();
  last().opens();
  last().ends(4003, "box is asleep. Use it, or start it, to wake it.");
  await settled();
  assert.deepEqual(states, ["connecting", "connected", "asleep"]);
});

test("a stopped sandbox is not retried", async () => {
  const { connection, states } = open();
  answer = { type: "basic", status: 409, json: async () => ({ detail: "box is stopped. Start it first." }) };
  connection.connect();
  last().ends(1006);
  await settled();
  mock.timers.tick(60 * 60_000);
  assert.equal(sockets.length, 1);
  assert.equal(states.at(-1), "closed: box is stopped. Start it first.");
});

test("a sandbox whose own host reports that it is asleep is not retried", async () => {
  const { connection, states } = open();
  answer = { type: "basic", status: 503, ok: false, json: async () => ({ code: "asleep", detail: "A request that only observes does not wake it." }) };
  connection.connect();
  last().ends(1006);
  await settled();
  mock.timers.tick(60 * 60_000);
  assert.equal(sockets.length, 1);
  assert.equal(states.at(-1), "asleep");
  assert.equal(asked.at(-1).headers["X-Sandboxd-Observe"], "1");
});

test("a sandbox whose own host reports that it is frozen is shown as frozen, and not retried", async () => {
  const { connection, states, rests } = open();
  answer = { type: "basic", status: 503, ok: false, json: async () => ({ code: "frozen" }) };
  connection.connect();
  last().ends(1006);
  await settled();
  mock.timers.tick(60 * 60_000);
  assert.equal(sockets.length, 1);
  assert.equal(states.at(-1), "asleep");
  assert.deepEqual(rests, ["frozen"]);
});

test("leaving the page disconnects, and returning reconnects without waking", () => {
  const { connection, states } = open();
  connection.wake();
  last().opens();
  fires("pagehide");
  assert.equal(last().closed, 1000);
  last().ends(1000);
  mock.timers.tick(100_000);
  assert.equal(sockets.length, 1);
  fires("pageshow", { persisted: true });
  assert.equal(sockets.length, 2);
  assert.ok(!wakes());
  assert.deepEqual(states, ["connecting", "connected", "reconnecting"]);
});

test("returning to a page does not reconnect to a sleeping sandbox", () => {
  const { connection } = open();
  connection.connect();
  last().opens();
  last().ends(4003);
  fires("pagehide");
  fires("pageshow", { persisted: true });
  assert.equal(sockets.length, 1);
});

test("a terminal of a deleted sandbox says so once, and does not offer to connect", async () => {
  for (const code of [4004, 1006]) {
    const { connection, states } = open();
    answer = { type: "basic", status: 410, ok: false, json: async () => ({ code: "gone", detail: "box was deleted." }) };
    connection.connect();
    last().ends(code, "The sandbox was deleted.");
    await settled();
    assert.equal(states.at(-1), "deleted", code);
  }
});

test("typing to a server that does not answer is told of within seconds, and what may be lost when the line is given up", async () => {
  const { connection, states, doubts } = open();
  connection.connect();
  last().opens();
  mock.timers.tick(1500);
  says("0$ ");
  mock.timers.tick(1500);
  connection.type(["0l"]);
  assert.deepEqual(last().sent.length, 2, "it asks at once");
  mock.timers.tick(3000);
  assert.deepEqual([states.at(-1), doubts], ["silent", []]);
  says("0l");
  assert.equal(states.at(-1), "connected");
  mock.timers.tick(1500);
  connection.type(["0s"]);
  for (let i = 0; i < 12; i++) mock.timers.tick(1000);
  await settled();
  assert.deepEqual([states.at(-1), doubts.length], ["reconnecting", 1]);
  connection.type(["0x"]);
  assert.match(doubts[1], /not sent/);
});
