// Names come from the sandbox and may hold anything: line breaks, terminal escapes, marks that turn the direction of
// text, HTML. They are shown as text, and what cannot be seen in them is shown escaped.
import { h } from "../js/dom.js";
import { bytesOf } from "./paths.js";

// What cannot be seen, or changes how its neighbours are seen.
const unseen = /[\p{Cc}\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/u;
const short = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e", "\0": "\\0" };

function escaped(c) {
  const n = c.codePointAt(0);
  if (short[c]) return short[c];
  if (n < 0x100) return `\\x${n.toString(16).padStart(2, "0")}`;
  return n > 0xffff ? `\\u{${n.toString(16)}}` : `\\u${n.toString(16).padStart(4, "0")}`;
}

// pieces cuts text into what can be shown as it is and what is shown escaped. Spaces at the ends of a name count as unseen.
export function pieces(text, name = true) {
  const out = [];
  const chars = [...text];
  const lead = chars.findIndex((c) => c !== " ");
  const tail = chars.findLastIndex((c) => c !== " ");
  chars.forEach((c, i) => {
    const space = name && c === " " && (i < lead || i > tail || lead < 0);
    const hidden = space || unseen.test(c);
    const last = out.at(-1);
    const shown = space ? "·" : hidden ? escaped(c) : c;
    if (last && last.escaped === hidden) last.text += shown;
    else out.push({ text: shown, escaped: hidden });
  });
  return out;
}

// piecesOf does it for an encoded name: bytes that are no text are shown as bytes.
export function piecesOf(encoded) {
  const out = [];
  const add = (list) => out.push(...list);
  const bytes = bytesOf(encoded);
  let from = 0;
  for (let i = 0; i < bytes.length; ) {
    const size = runeAt(bytes, i);
    if (size) {
      i += size;
      continue;
    }
    if (i > from) add(pieces(new TextDecoder().decode(bytes.subarray(from, i))));
    add([{ text: `\\x${bytes[i].toString(16).padStart(2, "0")}`, escaped: true }]);
    from = ++i;
  }
  if (from < bytes.length) add(pieces(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes.subarray(from))));
  return out;
}

// runeAt gives how many bytes the character at i has, or 0 when there is none.
function runeAt(bytes, i) {
  const b = bytes[i];
  const size = b < 0x80 ? 1 : b >= 0xc2 && b < 0xe0 ? 2 : b >= 0xe0 && b < 0xf0 ? 3 : b >= 0xf0 && b < 0xf5 ? 4 : 0;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes.subarray(i, i + size));
    return i + size <= bytes.length ? size : 0;
  } catch {
    return 0;
  }
}

// plainName is a name on one line for tooltips, messages and what is read aloud.
export function plainName(encoded) {
  return piecesOf(encoded).map((p) => p.text).join("");
}

// lineOf is a line of a file on one line: a tab is two spaces wide.
export function lineOf(text) {
  return pieces(text.replaceAll("\t", "  "), false).map((p) => p.text).join("");
}

// nameElement shows an encoded name, or a path, in an element whose direction is its own.
export function nameElement(encoded, className = "name") {
  return shownAs(piecesOf(encoded), className);
}

// textElement does it for text.
export function textElement(text, className = "name") {
  return shownAs(pieces(text), className);
}

function shownAs(list, className) {
  return h("bdi", { class: className }, list.map((piece) => (piece.escaped ? h("span", { class: "escaped" }, piece.text) : piece.text)));
}
