import assert from "node:assert/strict";
import { test } from "node:test";
import { kindName, octal, permissions, size } from "./format.js";

test("sizes are in binary units", () => {
  assert.deepEqual([0, 1023, 1024, 1536, 10_240, 5 << 20, 3 * 2 ** 40].map(size), ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "10 KiB", "5.0 MiB", "3.0 TiB"]);
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
