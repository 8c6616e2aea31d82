import assert from "node:assert/strict";
import { test } from "node:test";
import { axisTimes, cores, coresLimit, dollars, exact, iso, many, rate } from "./format.js";
import { fade } from "./look.js";

const at = (...parts) => new Date(...parts).getTime() / 1000;

test("cores have as many digits as tell small ones apart", () => {
  assert.deepEqual([0, 0.004, 0.25, 1.5, 12.34, 128].map(cores), ["0.00", "0.00", "0.25", "1.50", "12.3", "128"]);
  assert.deepEqual([1, 0.5, 2].map(coresLimit), ["1 core", "0.5 cores", "2 cores"]);
  assert.equal(rate(2048), "2 KiB/s");
});

test("numbers and money have as many digits as say something", () => {
  assert.deepEqual([0, 950, 9999, 12345, 4e6, 1.25e9].map(many), ["0", "950", "9999", "12.3 k", "4 M", "1.25 G"]);
  assert.deepEqual([0, 12.345, 1, 0.25, 0.0123, 0.00042].map(dollars), ["$0.00", "$12.35", "$1.00", "$0.25", "$0.012", "$0.00042"]);
});

test("an axis has the date where a day begins, and seconds only when they differ", () => {
  assert.deepEqual(axisTimes([at(2026, 10, 23, 22, 0), at(2026, 10, 24, 0, 0), at(2026, 10, 24, 2, 0)], 7200), ["22:00", "24 Nov", "02:00"]);
  assert.deepEqual(axisTimes([at(2026, 0, 2, 3, 4, 5)], 10), ["03:04:05"]);
  assert.deepEqual(axisTimes([at(2026, 0, 2, 12, 0)], 86400), ["2 Jan"]);
});

test("moments are as exact as their step", () => {
  assert.equal(exact(at(2026, 0, 2, 3, 4, 5)), "2 Jan 03:04:05");
  assert.equal(exact(at(2026, 0, 2, 3, 4, 5), 300), "2 Jan 03:04");
  assert.equal(iso(1767323045.4), "2026-01-02T03:04:05Z");
});

test("a computed colour is made transparent", () => {
  assert.equal(fade("rgb(70, 80, 214)", 0.1), "rgba(70, 80, 214, 0.1)");
});
