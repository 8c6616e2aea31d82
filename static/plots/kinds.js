// The plots of the page: their lines, limits and units.
import { cores, coresLimit, dollars, many, rate, size } from "./format.js";
import { lastOf } from "./series.js";

const MiB = 2 ** 20;
const decimal = [0.01, 0.1, 1, 10, 100].flatMap((n) => [n, 2 * n, 5 * n]); // two digits tell them apart
const binary = Array.from({ length: 50 }, (_, n) => 2 ** n);

const whole = Array.from({ length: 15 }, (_, n) => 10 ** n).flatMap((n) => [n, 2 * n, 5 * n]);
const money = Array.from({ length: 12 }, (_, n) => 10 ** (n - 5)).flatMap((n) => [n, 2 * n, 5 * n]);

// Lines have a colour of the look, and a dash so that they can be told apart without it.
export const kinds = {
  cpu: {
    lines: [{ name: "cpu", label: "Used", colour: "first", fill: true }],
    format: cores, unit: " cores", least: 0.1, steps: decimal,
    limit: (series) => series.cpu_limit, limitText: coresLimit,
  },
  memory: {
    lines: [{ name: "memory", label: "Working set", colour: "first", fill: true }, { name: "cache", label: "Cache", colour: "quiet", dash: [4, 4] }],
    format: size, unit: "", least: 16 * MiB, steps: binary,
    limit: (series) => lastOf(series, "limit"), limitText: size,
  },
  network: {
    lines: [{ name: "rx", label: "Received", colour: "first", fill: true }, { name: "tx", label: "Sent", colour: "second", dash: [6, 3] }],
    format: rate, unit: "", least: 1024, steps: binary,
  },
  disk: {
    lines: [{ name: "read", label: "Read", colour: "first", fill: true }, { name: "write", label: "Written", colour: "second", dash: [6, 3] }],
    format: rate, unit: "", least: 1024, steps: binary,
  },
  requests: {
    lines: [{ name: "requests", label: "Requests", colour: "first", fill: true }, { name: "failed", label: "Failed", colour: "second", dash: [6, 3] }],
    format: many, unit: "", least: 4, steps: whole,
  },
  tokens: {
    lines: [
      { name: "input", label: "Input", colour: "first", fill: true }, { name: "output", label: "Output", colour: "second", dash: [6, 3] },
      { name: "cached", label: "Cached", colour: "quiet", dash: [4, 4] },
    ],
    format: many, unit: "", least: 100, steps: whole,
  },
  cost: {
    lines: [{ name: "dollars", label: "Cost", colour: "first", fill: true }],
    format: dollars, unit: "", least: 0.001, steps: money,
  },
};
