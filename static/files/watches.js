// One Watch for each sandbox that the page shows, shared by the tree and the editor.
import { Watch } from "./watch.js";

const watches = new Map();

export function watchOf(files) {
  if (!watches.has(files.base)) watches.set(files.base, new Watch(files));
  return watches.get(files.base);
}
