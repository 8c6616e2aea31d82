import assert from "node:assert/strict";
import { test } from "node:test";
import { fullTime, kindName, octal, permissions, shortTime, size } from "./format.js";

test("sizes are in binary units, with three digits as the server writes them", () => {
  assert.deepEqual([0, 999, 1000, 1247, 1536, 10_240, 5 << 20, 312 * 2 ** 20, 23388000000, 3 * 2 ** 40].map(size), ["0 B", "999 B", "0.98 KiB", "1.22 KiB", "1.5 KiB", "10 KiB", "5 MiB", "312 MiB", "21.8 GiB", "3 TiB"]);
});

test("permissions are formatted as by ls", () => {
  assert.deepEqual(["0644", "0755", "4755", "2644", "1777", "0000", "7777"].map(permissions), ["rw-r--r--", "rwxr-xr-x", "rwsr-xr-x", "rw-r-Sr--", "rwxrwxrwt", "---------", "rwsrwsrwt"]);
  assert.equal(octal(0o644), "0644");
  assert.equal(permissions("x"), "");
});

test("entries are named by their type", () => {
  assert.equal(kindName({ type: "link", target_type: "folder" }), "Link to a folder");
  assert.equal(kindName({ type: "link", target_type: "" }), "Broken link");
  assert.match(kindName({ type: "other" }), /Special/);
});

test("times have 24 hours, as everywhere", () => {
  const then = new Date(2026, 10, 27, 0, 37, 5);
  assert.equal(shortTime(then.toISOString(), then.getTime()), "00:37");
  then.setHours(13);
  assert.equal(shortTime(then.toISOString(), then.getTime()), "13:37");
  assert.match(fullTime(then.toISOString()), /13:37:05$/);
});
