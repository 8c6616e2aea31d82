import assert from "node:assert/strict";
import { test } from "node:test";
import { qrcode } from "qrcode-generator";
import { shape } from "./qr.js";

const link = "https://3000-brave-otter.box.example.com/.sandboxd/share#" + "A".repeat(43);

// painted gives the modules that a path of shape covers, as "column row".
function painted(path) {
  const found = new Set();
  for (const [, x, y, wide] of path.matchAll(/M(\d+) (\d+)h(\d+)v1h-\3z/g)) {
    for (let at = Number(x); at < Number(x) + Number(wide); at++) found.add(`${at} ${y}`);
  }
  return found;
}

test("the picture has every dark module of the code, and nothing in the quiet zone", () => {
  const code = qrcode(0, "M");
  code.addData(link);
  code.make();
  const { path, size } = shape(code);
  const found = painted(path);
  const modules = code.getModuleCount();
  assert.equal(size, modules + 8);
  let dark = 0;
  for (let row = 0; row < modules; row++) {
    for (let column = 0; column < modules; column++) {
      assert.equal(found.has(`${column + 4} ${row + 4}`), code.isDark(row, column), `${column} ${row}`);
      if (code.isDark(row, column)) dark++;
    }
  }
  assert.equal(found.size, dark);
});
