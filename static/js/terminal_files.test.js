import assert from "node:assert/strict";
import { test } from "node:test";
import { filesOf } from "./terminal_files.js";

test("looking up a path does not count as use of the sandbox", async (t) => {
  const asked = [];
  t.mock.method(globalThis, "fetch", async (url) => {
    asked.push(new URL(url, "http://localhost"));
    return { ok: true, redirected: false, json: async () => ({ name: "a b.js", type: "file" }) };
  });
  let awake = true;
  const files = filesOf({ dataset: { filesBase: "/sandboxes/lab/files", filesHome: "/home/agent" } }, async () => "/", () => awake);
  assert.equal((await files.find("/home/agent/a b.js")).type, "file");
  const query = asked[0].searchParams;
  assert.deepEqual([query.get("path"), query.get("stat"), query.get("refresh"), query.get("missing")], ["/home/agent/a b.js", "true", "true", "empty"]);
  t.mock.method(globalThis, "fetch", async () => ({ ok: true, redirected: false, status: 204 }));
  assert.equal(await files.find("/home/agent/none.js"), null);
  awake = false;
  assert.equal(await files.find("/home/agent/b.js"), null);
  assert.equal(asked.length, 1);
});
