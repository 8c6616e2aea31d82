import assert from "node:assert/strict";
import { test } from "node:test";
import { lines } from "./api.js";

test("results come line by line, however the stream is cut", async () => {
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
