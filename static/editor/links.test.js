import assert from "node:assert/strict";
import { test } from "node:test";
import { linkOf } from "./links.js";

const from = "/home/agent/docs/a.md";

test("links lead to files, to the web, or nowhere", () => {
  assert.deepEqual(linkOf("b.md", from), { path: "/home/agent/docs/b.md" });
  assert.deepEqual(linkOf("../x%20y.md#part", from), { path: "/home/agent/x%20y.md" });
  assert.deepEqual(linkOf("/etc/hosts?x", from), { path: "/etc/hosts" });
  assert.deepEqual(linkOf("../../../../../etc/passwd", from), { path: "/etc/passwd" });
  assert.deepEqual(linkOf("100%.md", from), { path: "/home/agent/docs/100%25.md" });
  assert.deepEqual(linkOf("https://example.com/a b", from), { url: "https://example.com/a%20b" });
  for (const bad of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "//evil.example/x", "vbscript:x", "file:///etc/passwd", "#", ""]) assert.equal(linkOf(bad, from), null, bad);
});
