// Compares screenshots with approved ones: node static/shots/compare.js APPROVED TAKEN DIFFERENCES. It prints for each how many of how many
// pixels differ, and how many at most in a tile, as JSON. One that has no approved one, or another size, differs as a whole.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pixelmatch from "pixelmatch";
import { PNG } from "pngjs";

const threshold = 0.1; // of what a pixel may differ, from 0 to 1
const tile = 24; // pixels: a button or a word that is gone is much of a tile, and little of a page

const [approved, taken, differences] = process.argv.slice(2);
const read = (folder, name) => PNG.sync.read(readFileSync(join(folder, name)));
const names = (folder) => readdirSync(folder).filter((name) => name.endsWith(".png"));

function compare(name) {
  const now = read(taken, name);
  const { width, height } = now;
  const total = width * height;
  const other = { name, differ: total, total, tile: tile * tile };
  if (!names(approved).includes(name)) return other;
  const before = read(approved, name);
  if (before.width !== width || before.height !== height) return other;
  const mask = new PNG({ width, height });
  const differ = pixelmatch(before.data, now.data, mask.data, width, height, { threshold, includeAA: true, diffMask: true });
  if (differ) writeFileSync(join(differences, name), PNG.sync.write(mask));
  return { name, differ, total, tile: differ ? most(mask) : 0 };
}

// most returns how many pixels are set in the tile that has most of them. Tiles overlap by half.
function most({ width, height, data }) {
  let found = 0;
  for (let top = 0; top < height; top += tile / 2) {
    for (let left = 0; left < width; left += tile / 2) {
      let count = 0;
      for (let y = top; y < Math.min(top + tile, height); y++) {
        for (let x = left; x < Math.min(left + tile, width); x++) if (data[4 * (y * width + x) + 3]) count++;
      }
      found = Math.max(found, count);
    }
  }
  return found;
}

mkdirSync(differences, { recursive: true });
console.log(JSON.stringify({ compared: names(taken).map(compare), missing: names(approved).filter((name) => !names(taken).includes(name)) }));
