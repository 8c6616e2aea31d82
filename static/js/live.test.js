import assert from "node:assert/strict";
import { test } from "node:test";
import { fires, last, settled, sockets } from "./fake_window.js";
import { Live, present } from "./live.js";

function world(t, status = 426) {
  t.mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
  t.mock.method(Math, "random", () => 1);
  t.mock.method(globalThis, "fetch", async () => ({ status }));
  sockets.length = 0;
  const live = new Live();
  t.after(() => live.dispose());
  const events = [];
  for (const kind of ["connected", "silent", "lost", "signed-out", "other-account"]) live.addEventListener(kind, () => events.push(kind));
  return { live, events };
}

const says = (id, kind, data) => last().says(JSON.stringify({ id, kind, data }));
const sent = () => last().sent.map((text) => JSON.parse(text));

function heard(channel, ...kinds) {
  const list = [];
  for (const kind of kinds) channel.addEventListener(kind, (event) => list.push(event.data ? `${kind}: ${event.data}` : kind));
  return list;
}

test("all topics of a page share one connection, and each channel gets its own events", (t) => {
  const { live } = world(t);
  const parts = live.open("/sandboxes?q=x", "seen=1");
  last().opens();
  const folders = live.open("/sandboxes/lab/files?path=/a");
  assert.equal(sockets.length, 1);
  assert.deepEqual(sent(), [{ id: 1, topic: "/sandboxes?q=x&seen=1" }, { id: 2, topic: "/sandboxes/lab/files?path=/a" }]);
  const [one, two] = [heard(parts, "parts"), heard(folders, "changed", "ended")];
  says(1, "parts", "<p>");
  says(2, "changed", "{}");
  says(0, "alive");
  assert.deepEqual([one, two], [["parts: <p>"], ["changed: {}"]]);
  folders.close();
  says(2, "changed", "late");
  assert.deepEqual(sent().at(-1), { id: 2 });
  assert.deepEqual(two, ["changed: {}"]);
});

test("a channel hears that it is open, also where the connection was there before it", async (t) => {
  const { live } = world(t);
  live.open("/frame");
  last().opens();
  const list = heard(live.open("/logs"), "opened");
  await settled();
  assert.deepEqual(list, ["opened"]);
});

test("a page says whether it is hidden, also when it connects", (t) => {
  const { live } = world(t);
  document.hidden = true;
  t.after(() => (document.hidden = false));
  live.open("/sandboxes");
  last().opens();
  assert.deepEqual(sent(), [{ hidden: true }, { id: 1, topic: "/sandboxes" }]);
  document.hidden = false;
  live.tellHidden();
  assert.deepEqual(sent().at(-1), { hidden: false });
});

test("an ended topic is not requested again", (t) => {
  const { live } = world(t);
  const channel = live.open("/gone");
  last().opens();
  const list = heard(channel, "ended");
  says(1, "ended", "{}");
  channel.close();
  assert.deepEqual(list, ["ended: {}"]);
  assert.equal(sent().length, 1);
});

test("a lost connection comes back with all channels, without what the page showed at first", (t) => {
  const { live, events } = world(t);
  const list = heard(live.open("/sandboxes", "seen=1"), "opened", "lost");
  last().opens();
  last().ends();
  assert.deepEqual(list, ["opened", "lost"]);
  t.mock.timers.tick(250);
  assert.equal(sockets.length, 2);
  last().opens();
  assert.deepEqual(sent(), [{ id: 1, topic: "/sandboxes" }]);
  assert.deepEqual(events, ["connected", "lost", "connected"]);
});

test("a page has no connection after it was left, and reconnects when it is back", (t) => {
  const { live, events } = world(t);
  live.open("/sandboxes", "seen=1");
  last().opens();
  fires("pagehide");
  assert.equal(last().closed, 1000);
  live.open("/templates");
  fires("online");
  t.mock.timers.tick(100_000);
  assert.equal(sockets.length, 1);
  fires("pageshow", { persisted: true });
  assert.equal(sockets.length, 2);
  sockets[0].ends(1005);
  last().opens();
  assert.deepEqual(sent(), [{ id: 1, topic: "/sandboxes" }, { id: 2, topic: "/templates" }]);
  assert.deepEqual(events, ["connected", "connected"], "leaving is not a loss");
});

test("an unanswered ping means a lost connection, at once after the computer was asleep", (t) => {
  const { live, events } = world(t);
  live.open("/sandboxes");
  last().opens();
  for (let i = 0; i < 20; i++) {
    t.mock.timers.tick(5000);
    assert.deepEqual(sent().at(-1), { id: 0 });
    says(0, "alive");
  }
  assert.equal(sockets.length, 1);
  t.mock.timers.setTime(Date.now() + 3_600_000);
  fires("online");
  assert.equal(sockets[0].closed, 1000);
  assert.equal(sockets.length, 2);
  last().opens();
  for (let i = 0; i < 3; i++) t.mock.timers.tick(5000);
  assert.equal(sockets[1].closed, 1000);
  assert.equal(events.at(-1), "lost");
});

test("a server that does not answer a ping is told of, and when it answers again", (t) => {
  const { live, events } = world(t);
  live.open("/sandboxes");
  last().opens();
  t.mock.timers.tick(5000);
  says(0, "alive");
  t.mock.timers.tick(5000);
  t.mock.timers.tick(2000);
  assert.deepEqual(events, ["connected"]);
  t.mock.timers.tick(1000);
  assert.deepEqual(events, ["connected", "silent"]);
  says(0, "alive");
  t.mock.timers.tick(1000);
  assert.deepEqual(events, ["connected", "silent", "connected"]);
});

test("a page whose user signed out, or changed, says so", async (t) => {
  const { live, events } = world(t, 401);
  live.open("/sandboxes");
  last().ends();
  await settled();
  assert.deepEqual(events, ["lost", "signed-out"]);
  t.mock.timers.tick(250);
  last().opens();
  last().ends(1008);
  await settled();
  assert.deepEqual(events, ["lost", "signed-out", "connected", "lost", "signed-out"]);
  t.mock.timers.reset();
  t.mock.restoreAll();
  const other = world(t, 409);
  other.live.open("/sandboxes");
  last().ends();
  await settled();
  assert.deepEqual(other.events, ["lost", "other-account"]);
});

test("the steps of work and the number of alerts are left out where nothing shows them", () => {
  const part = (id, text) => `<hx-partial hx-target="#${id}" hx-swap="outerHTML">${text}</hx-partial>`;
  const [state, steps, log] = [part("ws-state", "<p>Starting</p>"), part("work-steps", "<div>\n</div>"), part("work-log", "line\n")];
  assert.equal(present(state + steps + log, () => false), state);
  assert.equal(present(steps + state + log, (id) => id === "work-log"), state + log);
  assert.equal(present(part("alert-count", "2") + state, () => false), state);
});
