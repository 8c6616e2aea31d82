import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fakePage } from "./fake_dom.js";

fakePage();

test("shared.js has every name of its modules", async () => {
  const shared = await import("./shared.js");
  const modules = [...readFileSync(new URL("shared.js", import.meta.url), "utf8").matchAll(/from "(.+)"/g)].map((m) => m[1]);
  assert.ok(modules.length > 10);
  for (const path of modules) {
    for (const [name, value] of Object.entries(await import(path))) assert.equal(shared[name], value, `${name} of ${path}`);
  }
});
