import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { PNG } from "pngjs";

// picture is a white page with grey lines where there is text.
function picture(width, height, text) {
  const png = new PNG({ width, height });
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) png.data.set(text(x, y) ? [160, 160, 165, 255] : [255, 255, 255, 255], 4 * (y * width + x));
  }
  return PNG.sync.write(png);
}

test("a word that is gone is seen, although it is little of the page", (t) => {
  const folder = mkdtempSync(join(tmpdir(), "shots-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [approved, taken] = ["approved", "taken"].map((name) => join(folder, name));
  for (const f of [approved, taken]) mkdirSync(f);
  const word = (x, y) => y >= 20 && y < 24 && x >= 100 && x < 130 && (x + y) % 2 === 0;
  writeFileSync(join(approved, "same.png"), picture(400, 260, word));
  writeFileSync(join(taken, "same.png"), picture(400, 260, word));
  writeFileSync(join(approved, "gone.png"), picture(400, 260, word));
  writeFileSync(join(taken, "gone.png"), picture(400, 260, () => false));
  writeFileSync(join(taken, "new.png"), picture(10, 10, () => false));
  writeFileSync(join(approved, "missing.png"), picture(10, 10, () => false));
  const out = JSON.parse(execFileSync("node", [new URL("compare.js", import.meta.url).pathname, approved, taken, join(folder, "differences")]));
  const found = Object.fromEntries(out.compared.map((c) => [c.name, c]));
  assert.equal(found["same.png"].differ, 0);
  assert.ok(found["gone.png"].tile > 36 && found["gone.png"].differ < 0.001 * found["gone.png"].total, JSON.stringify(found["gone.png"]));
  assert.equal(found["new.png"].differ, 100);
  assert.deepEqual(out.missing, ["missing.png"]);
});
