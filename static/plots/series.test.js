import assert from "node:assert/strict";
import { test } from "node:test";
import { anything, append, bands, crossed, grouped, lastOf, marks, peak, present, scaled, stateAt, top, within } from "./series.js";

// small is a series of 1000 to 1030 in steps of ten seconds, of which the last has no figures yet.
const small = (more = {}) => ({
  since: 1000, until: 1030, step: 10, live: true, time: [1000, 1010, 1020], measured: [10, 10, null],
  columns: { cpu: [1, 2, null], memory: [5, 6, null], rx: [100, 50, null], limit: [64, 64, null] }, changes: [], ...more,
});
const figures = (cpu, memory, rx, limit = 64) => ({ cpu, memory, rx, limit });

test("append puts figures into their step: means by time, the most of the others, the newest limit", () => {
  const s = small();
  assert.equal(append(s, { now: 1022, time: 1020, measured: 2, figures: figures(1, 10, 200) }), true);
  assert.equal(append(s, { now: 1028, time: 1022, measured: 6, figures: figures(3, 8, 0, 32) }), true);
  assert.deepEqual([s.columns.cpu[2], s.columns.memory[2], s.columns.rx[2], s.columns.limit[2], s.measured[2]], [2.5, 10, 50, 32, 8]);
  assert.deepEqual([s.since, s.until], [1000, 1030], "the series moved before its end came");
});

test("crossed finds the line that runs through a box, also between two steps", () => {
  const s = { time: [0, 10, 20, 30], columns: { cpu: [0, 10, null, 5], memory: [1, 1, 1, 1] } };
  const box = (from, to, low, high) => crossed(s, ["cpu"], { from, to, low, high });
  assert.deepEqual([box(4, 6, 4, 6), box(4, 6, 7, 9), box(4, 6, 1, 3), box(12, 18, 0, 10)], [true, false, false, false]);
  assert.deepEqual([box(28, 32, 4, 6), box(28, 32, 6, 7), box(31, 40, 0, 9)], [true, false, false], "a point alone");
  assert.equal(crossed(s, ["cpu", "memory"], { from: 12, to: 18, low: 0, high: 2 }), true);
});

test("append takes no figures twice", () => {
  const s = small({ known: 1024 });
  assert.equal(append(s, { now: 1024, time: 1022, measured: 2, figures: figures(9, 9, 9) }), false);
  assert.equal(s.columns.cpu[2], null);
  assert.equal(append(s, { now: 1026, time: 1024, measured: 2, figures: figures(1, 1, 1) }), true);
  assert.equal(append(s, { now: 1026, time: 1024, measured: 2, figures: figures(1, 1, 1) }), false);
});

test("append moves on with time, fills what was not measured, and lets go of what is over", () => {
  const s = small();
  append(s, { now: 1052 });
  assert.deepEqual([s.since, s.until], [1022, 1052]);
  assert.deepEqual(s.time, [1010, 1020, 1030, 1040, 1050]);
  assert.deepEqual(s.columns.cpu, [2, null, null, null, null]);
  assert.equal(s.measured.length, s.time.length);
  append(s, { now: 1_000_000 });
  assert.ok(s.time.length <= 10_000);
});

test("append begins an empty series", () => {
  const s = small({ time: [], measured: [], columns: { cpu: [], memory: [], rx: [], limit: [] } });
  assert.equal(anything(s), false);
  append(s, { now: 1034, time: 1032, measured: 2, figures: figures(1, 2, 3) });
  assert.deepEqual(s.time, [1030]);
  assert.equal(anything(s), true);
});

const changes = [
  { time: 900, state: "running", mark: "start" }, { time: 1005, state: "frozen", mark: "" }, { time: 1010, state: "sleeping", mark: "" },
  { time: 1012, state: "asleep", mark: "" }, { time: 1020, state: "running", mark: "wake" }, { time: 1025, state: "running", mark: "oom" },
  { time: 1028, state: "stopped", mark: "" },
];

test("bands are the stretches without running, in sight; going to sleep is asleep", () => {
  assert.deepEqual(bands(small({ changes })), [
    { kind: "frozen", from: 1005, to: 1010 }, { kind: "asleep", from: 1010, to: 1020 }, { kind: "stopped", from: 1028, to: 1030 },
  ]);
  assert.deepEqual(bands(small({ changes: [{ time: 10, state: "asleep", mark: "" }] })), [{ kind: "asleep", from: 1000, to: 1030 }]);
  assert.deepEqual(bands(small()), []);
});

test("marks are those in sight, and overlapping ones are put together with the worst sign", () => {
  const list = marks(small({ changes }));
  assert.deepEqual(list.map(({ mark }) => mark), ["wake", "oom"]);
  assert.deepEqual(grouped(list, (t) => t - 1000, 100, 3).map(({ mark, all, room }) => [mark, all.length, room]), [["wake", 1, 5], ["oom", 1, 75]]);
  assert.deepEqual(grouped(list, (t) => t - 1000, 100, 10).map(({ mark, all }) => [mark, all.length]), [["oom", 2]]);
});

test("the state at a time is that of the last change", () => {
  assert.equal(stateAt(changes, 899), "");
  assert.equal(stateAt(changes, 1011), "sleeping");
  assert.equal(stateAt(changes, 5000), "stopped");
});

test("a limit is in sight once a quarter of it is used", () => {
  assert.equal(top(0.1, 2, 0.1), 0.1 * 1.15);
  assert.equal(top(0.5, 2, 0.1), 2.16);
  assert.equal(top(3, 2, 0.1), 3 * 1.15);
  assert.equal(top(0, 0, 0.1), 0.1);
  assert.equal(peak(small(), ["cpu", "rx"]), 100);
  assert.equal(lastOf(small(), "limit"), 64);
  assert.equal(lastOf(small({ columns: { limit: [null] } }), "limit"), null);
});

test("figures of more than one step are shared out", () => {
  const s = small({ until: 1020, known: 1005, measured: [5, null, null], columns: { cpu: [1, null, null], memory: [1, null, null], rx: [1, null, null], limit: [0, null, null] } });
  append(s, { now: 1025, time: 1005, measured: 20, figures: figures(3, 7, 0) });
  assert.deepEqual(s.measured, [10, 10, 5]);
  assert.deepEqual(s.columns.cpu, [2, 3, 3]);
});

test("figures are present while they are recent and it runs", () => {
  assert.equal(present(small()), 1);
  assert.equal(present(small({ until: 1100 })), 2);
  assert.equal(present(small({ changes: [{ time: 1015, state: "asleep", mark: "" }] })), 2);
  assert.equal(present(small({ changes: [{ time: 1015, state: "running", mark: "" }] })), 1);
});

test("a stretch is kept within bounds and not too short", () => {
  assert.deepEqual(within({ since: 20, until: 10 }, 0, 100, 5), { since: 10, until: 20 });
  assert.deepEqual(within({ since: 10, until: 11 }, 0, 100, 5), { since: 8, until: 13 });
  assert.deepEqual(within({ since: 90, until: 130 }, 0, 100, 5), { since: 60, until: 100 });
  assert.deepEqual(within({ since: -50, until: 20 }, 0, 100, 5), { since: 0, until: 70 });
  assert.deepEqual(within({ since: -500, until: 900 }, 0, 100, 5), { since: 0, until: 100 });
  assert.deepEqual(scaled({ since: 0, until: 10 }, 2), { since: -5, until: 15 });
  assert.deepEqual(scaled({ since: 0, until: 10 }, 0.5, 2), { since: 1, until: 6 });
});
