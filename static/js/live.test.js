import assert from "node:assert/strict";
import { test } from "node:test";
import { Live } from "./live.js";

// A websocket under test: the test is its other end.
class Socket {
  readyState = 0;
  sent = [];
  closed = false;
  send(text) {
    this.sent.push(JSON.parse(text));
  }
  close() {
    this.closed = true;
  }
  opens() {
    this.readyState = 1;
    this.onopen();
  }
  says(id, kind, data) {
    this.onmessage({ data: JSON.stringify({ id, kind, data }) });
  }
  ends(code = 1006) {
    this.readyState = 3;
    this.onclose({ code });
  }
}

function world(t, why = "") {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
  t.mock.method(Math, "random", () => 1);
  const sockets = [];
  const page = Object.assign(new EventTarget(), { document: Object.assign(new EventTarget(), { hidden: false }) });
  const connect = () => (sockets.push(new Socket()), sockets.at(-1));
  const live = new Live({ connect, refused: async () => why, page });
  const told = [];
  for (const kind of ["connected", "lost", "signed-out", "other-account"]) live.addEventListener(kind, () => told.push(kind));
  const shows = (kind, more = {}) => page.dispatchEvent(Object.assign(new Event(kind), more));
  return { live, sockets, told, shows, last: () => sockets.at(-1) };
}

function heard(channel, ...kinds) {
  const list = [];
  for (const kind of kinds) channel.addEventListener(kind, (event) => list.push(event.data ? `${kind}: ${event.data}` : kind));
  return list;
}

test("all that a page follows shares one connection, and each channel hears its own", (t) => {
  const { live, sockets, last } = world(t);
  const parts = live.open("/sandboxes?q=x", "seen=1");
  last().opens();
  const folders = live.open("/sandboxes/lab/files?path=/a");
  assert.equal(sockets.length, 1);
  assert.deepEqual(last().sent, [{ id: 1, topic: "/sandboxes?q=x&seen=1" }, { id: 2, topic: "/sandboxes/lab/files?path=/a" }]);
  const [one, two] = [heard(parts, "parts"), heard(folders, "changed", "ended")];
  last().says(1, "parts", "<p>");
  last().says(2, "changed", "{}");
  last().says(0, "alive");
  assert.deepEqual([one, two], [["parts: <p>"], ["changed: {}"]]);
  folders.close();
  last().says(2, "changed", "late");
  assert.deepEqual(last().sent.at(-1), { id: 2 });
  assert.deepEqual(two, ["changed: {}"]);
});

test("a topic that has ended is not asked for again", (t) => {
  const { live, last } = world(t);
  const channel = live.open("/gone");
  last().opens();
  const list = heard(channel, "ended");
  last().says(1, "ended", "{}");
  channel.close();
  assert.deepEqual(list, ["ended: {}"]);
  assert.equal(last().sent.length, 1);
});

test("a lost connection comes back with all channels, which then know nothing of what the page showed at first", (t) => {
  const { live, sockets, told, last } = world(t);
  const channel = live.open("/sandboxes", "seen=1");
  const list = heard(channel, "opened", "lost");
  last().opens();
  last().ends();
  assert.deepEqual(list, ["opened", "lost"]);
  t.mock.timers.tick(250);
  assert.equal(sockets.length, 2);
  last().opens();
  assert.deepEqual(last().sent, [{ id: 1, topic: "/sandboxes" }]);
  assert.deepEqual(told, ["connected", "lost", "connected"]);
});

test("a page that is left has no connection, and has one at once when it is back", (t) => {
  const { live, sockets, told, shows, last } = world(t);
  live.open("/sandboxes", "seen=1");
  last().opens();
  shows("pagehide");
  assert.ok(last().closed);
  live.open("/templates");
  shows("online");
  t.mock.timers.tick(100_000);
  assert.equal(sockets.length, 1);
  shows("pageshow", { persisted: true });
  assert.equal(sockets.length, 2);
  sockets[0].ends(1005);
  last().opens();
  assert.deepEqual(last().sent, [{ id: 1, topic: "/sandboxes" }, { id: 2, topic: "/templates" }]);
  assert.deepEqual(told, ["connected", "connected"], "leaving is no loss");
});

test("silence counts as a lost connection, at once when the computer has slept", (t) => {
  const { live, sockets, shows, last } = world(t);
  live.open("/sandboxes");
  last().opens();
  for (let i = 0; i < 20; i++) {
    t.mock.timers.tick(15_000);
    last().says(0, "alive");
  }
  assert.equal(sockets.length, 1);
  t.mock.timers.setTime(Date.now() + 3_600_000);
  shows("online");
  assert.ok(sockets[0].closed);
  assert.equal(sockets.length, 2);
});

test("who is signed out is told so", async (t) => {
  const { live, told, last } = world(t, "signed-out");
  live.open("/sandboxes");
  last().ends();
  await new Promise((soon) => setImmediate(soon));
  assert.deepEqual(told, ["lost", "signed-out"]);
  t.mock.timers.tick(250);
  last().opens();
  last().ends(1008);
  assert.deepEqual(told, ["lost", "signed-out", "connected", "lost", "signed-out"]);
});

test("who has signed in as somebody else is told so", async (t) => {
  const { live, told, last } = world(t, "other-account");
  live.open("/sandboxes");
  last().ends();
  await new Promise((soon) => setImmediate(soon));
  assert.deepEqual(told, ["lost", "other-account"]);
});
