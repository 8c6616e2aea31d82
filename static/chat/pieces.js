// Splits Markdown into pieces that are parsed one by one, and says what is not worth parsing. It draws nothing.
import { Fences, linesOf } from "./fences.js";

const piece = 4000; // characters of a piece, unless one block is longer
const longList = 16_000; // characters without a safe place to split, before a blank line is taken for one
export const longest = 32_000; // characters of one block that are parsed, or drawn at once

// deep says whether a text nests so deeply, or has so many unpaired marks, that parsing it would take too long.
export const deep = (text) => /^[ \t]*(?:[>*+-][ \t]*|\d+[.)][ \t]*){40}/m.test(text) || /[[(*_~`<!]{400}/.test(text) || marks(text) > 6000;

const marks = (text) => text.match(/[[\]*_~`<>!|]/g)?.length ?? 0;

// pieceOf gives the end of the next piece of a text: the last place within a few thousand characters, else the first one, where a
// block ends. That is a blank line outside of code before a line that is not indented. It is 0 when the text has no such place.
export function pieceOf(text) {
  const fences = new Fences();
  let [at, end, blank] = [0, 0, false];
  for (const line of linesOf(text)) {
    if (at > piece && end) return end;
    const empty = line.trim() === "";
    if (blank && !fences.open && !empty && (/^\S/.test(line) || at - end > longList)) end = at;
    fences.line(line);
    blank = empty && !fences.open && line.endsWith("\n");
    at += line.length;
  }
  return end;
}

// blocksOf splits Markdown that is still being written: what is complete, and the rest.
export function blocksOf(text) {
  let end = 0;
  for (let n = pieceOf(text); n; n = pieceOf(text.slice(end))) end += n;
  return { whole: text.slice(0, end), rest: text.slice(end) };
}
