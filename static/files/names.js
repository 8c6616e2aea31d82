// Names come from the sandbox and may hold anything: line breaks, escape sequences, bidirectional controls, HTML. They are
// shown as text, with invisible characters escaped.
import { h } from "../js/dom.js";
import { bytesOf } from "./paths.js";

// Characters that are invisible, or change how their neighbours are displayed.
const unseen = /[\p{Cc}\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\u{e0000}-\u{e0fff}]/u;
const lead = 14; // characters before a match
const short = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e", "\0": "\\0" };

function escaped(c) {
  const n = c.codePointAt(0);
  if (short[c]) return short[c];
  if (n < 0x100) return `\\x${n.toString(16).padStart(2, "0")}`;
  return n > 0xffff ? `\\u{${n.toString(16)}}` : `\\u${n.toString(16).padStart(4, "0")}`;
}

// pieces splits text into plain and escaped parts. Spaces at the ends of a name are escaped too.
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

// piecesOf does so for an encoded name. Bytes that are not UTF-8 are shown as bytes.
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

// runeAt returns the length in bytes of the character at i, or 0 if it is invalid.
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

// plainName returns a name as one line of text, for tooltips, messages and screen readers.
export function plainName(encoded) {
  return piecesOf(encoded).map((p) => p.text).join("");
}

// lineOf returns a line of a file as one line, with tabs two spaces wide.
export function lineOf(text) {
  return pieces(text.replaceAll("\t", "  "), false).map((p) => p.text).join("");
}

// leadOf returns the end of the text before a match, so that the match is visible also in a narrow pane.
export function leadOf(before) {
  const line = lineOf(before.trimStart());
  const chars = [...line];
  return chars.length > lead ? `…${chars.slice(-lead).join("")}` : line;
}

// nameElement shows an encoded name or path in an element with its own text direction.
export function nameElement(encoded, className = "name") {
  return shownAs(piecesOf(encoded), className);
}

// textElement does so for text.
export function textElement(text, className = "name") {
  return shownAs(pieces(text), className);
}

function shownAs(list, className) {
  return h("bdi", { class: className }, list.map((piece) => (piece.escaped ? h("span", { class: "escaped" }, piece.text) : piece.text)));
}
