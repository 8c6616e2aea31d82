// Makes paths on a terminal's screen links. Text that looks like a path is looked up when the pointer is over its line, and
// becomes a link if the file exists.
import { opens } from "./links.js";
import { findPaths, placesOf } from "./paths.js";

const freshFor = 15_000; // ms; how long a lookup is cached
const mostKept = 500;
const mostRows = 20; // of one wrapped line

// PathLinks is an xterm.js link provider. files: {find(path) → Promise<entry or null>, folder() → Promise<string>, home,
// open({path, line, column, type})}.
export class PathLinks {
  #known = new Map(); // path → {at, entry: Promise}

  constructor(screen, files, hint) {
    this.screen = screen;
    this.files = files;
    this.hint = hint;
  }

  async provideLinks(y, callback) {
    const line = wholeLine(this.screen.buffer.active, y - 1);
    const found = line ? findPaths(line.text) : [];
    if (found.length === 0) return callback(undefined);
    const folder = await this.files.folder();
    const links = await Promise.all(found.map((f) => this.#link(f, line, folder)));
    callback(links.filter(Boolean));
  }

  async #link(found, line, folder) {
    for (const path of placesOf(found.path, folder, this.files.home)) {
      const entry = await this.#find(path);
      if (!entry) continue;
      const { line: at, column } = found;
      return {
        range: { start: line.place(found.start), end: line.place(found.end - 1) },
        text: path,
        activate: (event) => opens(event) && this.files.open({ path, line: at, column, type: entry.type }),
        hover: () => this.hint(path),
        leave: () => this.hint(""),
      };
    }
    return null;
  }

  #find(path) {
    const now = Date.now();
    const known = this.#known.get(path);
    if (known && now - known.at < freshFor) return known.entry;
    const entry = this.files.find(path).catch(() => null);
    this.#known.delete(path);
    this.#known.set(path, { at: now, entry });
    if (this.#known.size > mostKept) this.#known.delete(this.#known.keys().next().value);
    return entry;
  }
}

// wholeLine returns the line of a screen row, joined from all rows that it wraps into, as {text, place(index)}. place
// returns the cell of a character, counting from 1.
export function wholeLine(buffer, row) {
  let first = row;
  while (first > 0 && row - first < mostRows && buffer.getLine(first)?.isWrapped) first--;
  const cells = [];
  let text = "";
  for (let at = first; at === first || (at < first + mostRows && buffer.getLine(at)?.isWrapped); at++) {
    const line = buffer.getLine(at);
    if (!line) return null;
    for (let x = 0; x < line.length; x++) {
      const cell = line.getCell(x);
      if (cell.getWidth() === 0) continue; // the second half of a wide character
      const chars = cell.getChars() || " ";
      for (let i = 0; i < chars.length; i++) cells.push({ x: x + 1, y: at + 1 });
      text += chars;
    }
  }
  return { text, place: (index) => cells[Math.min(index, cells.length - 1)] };
}
