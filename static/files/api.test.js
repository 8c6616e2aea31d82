import assert from "node:assert/strict";
import { test } from "node:test";
import { Files, lines } from "./api.js";

test("JSON lines are parsed however the stream is split", async () => {
  const text = '{"a":1}\n{"b":"ü\\n"}\n\n{"c":3}';
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 5, 1000]) {
    const stream = new ReadableStream({
      start(controller) {
        for (let i = 0; i < bytes.length; i += size) controller.enqueue(bytes.subarray(i, i + size));
        controller.close();
      },
    });
    const found = [];
    for await (const value of lines(stream)) found.push(value);
    assert.deepEqual(found, [{ a: 1 }, { b: "ü\n" }, { c: 3 }]);
  }
});

test("no more of a file is read than requested, even when the server sends all", async (t) => {
  let given = 0;
  let cancelled = false;
  let body = () => new ReadableStream({ pull: (c) => (given++ < 1000 ? c.enqueue(new Uint8Array(1000)) : c.close()), cancel: () => (cancelled = true) });
  let asked;
  t.mock.method(globalThis, "fetch", async (_, options) => (asked = options) && new Response(body(), { headers: { ETag: '"1"' } }));
  const files = new Files("/sandboxes/a/files", "/");
  const part = await files.read("/x", { most: 2500 });
  assert.deepEqual([part.bytes.length, part.part, part.etag], [2500, true, '"1"']);
  assert.ok(given < 10 && cancelled, `${given} pieces`);
  assert.equal(asked.headers.Range, undefined, "a browser keeps parts of files, and mixes them with what comes later");
  await files.read("/x", { most: 2500, long: true });
  assert.deepEqual([asked.headers.Range, asked.cache], ["bytes=0-2499", "no-store"]);
  body = () => "0123456789";
  for (const most of [10, 11]) assert.deepEqual((({ bytes, part, size }) => [bytes.length, part, size])(await files.read("/x", { most })), [10, false, 10]);
  body = () => null;
  assert.equal((await files.read("/x", { most: 9 })).part, false);
});

test("requests name the very sandbox that the page shows", () => {
  const files = new Files("/sandboxes/lab/files", "/home/agent", "b1");
  assert.equal(files.url("/a", { stat: "true" }), "/sandboxes/lab/files?path=/a&stat=true&sandbox_id=b1");
  assert.equal(files.archive("/a", "tar"), "/sandboxes/lab/files?path=/a&archive=tar&sandbox_id=b1");
});
