import assert from "node:assert/strict";
import { test } from "node:test";
import { clock, dateTime, day } from "./log_times.js";
import { newestFirst, newestID, oldestID } from "./log_order.js";
import { Waiting, mostRows } from "./log_waiting.js";

const rows = (from, n) => Array.from({ length: n }, (_, i) => ({ dataset: { id: String(from + n - i) } }));

test("lines wait newest first", () => {
  const w = new Waiting();
  w.add(rows(0, 2));
  w.add([...rows(2, 1), { dataset: {} }]); // with a note
  assert.equal(w.text, "3 new lines");
  assert.deepEqual(w.take().map((r) => r.dataset.id), ["3", undefined, "2", "1"]);
  assert.equal(w.count, 0);
  w.add(rows(0, 1));
  assert.equal(w.text, "1 new line");
});

test("no more lines wait than a page shows", () => {
  const w = new Waiting();
  for (let i = 0; i < 30; i++) w.add(rows(i * 100, 100));
  assert.equal(w.count, 3000);
  assert.equal(w.text, "3,000 new lines");
  const kept = w.take();
  assert.equal(kept.length, mostRows);
  assert.equal(kept[0].dataset.id, "3000");
});

test("times have their date when it is not today's", () => {
  const now = new Date(2026, 10, 21, 12);
  assert.equal(dateTime(new Date(2026, 10, 21, 9, 5, 7, 31), now), "09:05:07.031");
  assert.equal(dateTime(new Date(2026, 10, 20, 9, 5, 7, 31), now), "20 Nov 09:05:07");
});

test("entries have the time of day, under their day", () => {
  const now = new Date(2026, 2, 1, 12);
  assert.equal(clock(new Date(2026, 2, 1, 9, 5, 59)), "09:05");
  assert.equal(day(new Date(2026, 2, 1, 0, 0, 1), now), "Today");
  assert.equal(day(new Date(2026, 1, 28, 23, 59), now), "Yesterday");
  assert.equal(day(new Date(2026, 1, 27, 23, 59), now), "Friday 27 February 2026");
  const w = new Waiting("entry", "entries");
  w.add(rows(0, 1));
  assert.equal(w.text, "1 new entry");
  w.add(rows(1, 1));
  assert.equal(w.text, "2 new entries");
});

test("entries are ordered by their times, also those that were summed up late", () => {
  const entries = [{ id: "9", time: 58 }, { id: "8", time: 104 }, { note: true }, { id: "7", time: 103 }, { id: "6", time: 50 }];
  const sorted = newestFirst(entries, (row) => row.time);
  assert.deepEqual(sorted.map((row) => row.id), ["8", undefined, "7", "9", "6"]);
  const ids = sorted.map((row) => row.id).filter(Boolean);
  assert.equal(newestID(ids), "9");
  assert.equal(oldestID(ids), "6");
  assert.equal(newestID(["b-2", "a-1"]), "b-2"); // log lines are in order
  assert.equal(oldestID(["b-2", "a-1"]), "a-1");
});
