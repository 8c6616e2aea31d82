// Compares screenshots with approved ones: node static/shots/compare.js APPROVED TAKEN DIFFERENCES. It prints how many of how many
// pixels of each differ, as JSON. One that has no approved one, or another size, differs as a whole.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import pixelmatch from "pixelmatch";
import { PNG } from "pngjs";

const threshold = 0.2; // of what a pixel may differ, from 0 to 1: more than the edges of letters do from one browser to the next

const [approved, taken, differences] = process.argv.slice(2);
const read = (folder, name) => PNG.sync.read(readFileSync(join(folder, name)));
const names = (folder) => readdirSync(folder).filter((name) => name.endsWith(".png"));

function compare(name) {
  const now = read(taken, name);
  const total = now.width * now.height;
  if (!names(approved).includes(name)) return { name, differ: total, total };
  const before = read(approved, name);
  if (before.width !== now.width || before.height !== now.height) return { name, differ: total, total };
  const picture = new PNG({ width: now.width, height: now.height });
  const differ = pixelmatch(before.data, now.data, picture.data, now.width, now.height, { threshold });
  if (differ) writeFileSync(join(differences, name), PNG.sync.write(picture));
  return { name, differ, total };
}

mkdirSync(differences, { recursive: true });
console.log(JSON.stringify({ compared: names(taken).map(compare), missing: names(approved).filter((name) => !names(taken).includes(name)) }));
