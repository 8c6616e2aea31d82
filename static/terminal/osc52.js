// Programs' requests to put text into the clipboard (OSC 52), and what the user has decided about them. No DOM in here.
import { readJSON, writeJSON } from "../js/storage.js";

export const mostText = 256 * 1024; // bytes of one request
const mostKept = 200; // sandboxes
const key = "clipboard requests";

// requested returns the text of a request, {over: bytes} for one that is too large, or null for what is never done: reading the
// clipboard, and other selections than the clipboard.
export function requested(data) {
  const at = data.indexOf(";");
  const coded = data.slice(at + 1);
  if (at < 0 || !["", "c"].includes(data.slice(0, at)) || coded === "" || coded === "?") return null;
  const size = Math.floor((coded.length * 3) / 4);
  if (size > mostText + 2) return { over: size };
  try {
    return { text: new TextDecoder().decode(Uint8Array.from(atob(coded), (c) => c.charCodeAt(0))) };
  } catch {
    return null; // no base64
  }
}

// decision returns "allow", "never", or "" as long as the user has not decided for a sandbox.
export function decision(store, box) {
  return readJSON(store, key)[box] ?? "";
}

// decide remembers a decision, in this browser. The oldest are forgotten first, and asked for again.
export function decide(store, box, what) {
  const { [box]: _, ...others } = readJSON(store, key);
  writeJSON(store, key, Object.fromEntries([...Object.entries(others), [box, what]].slice(-mostKept)));
}

// excerpt returns the beginning of a text on one line, for a question about it.
export function excerpt(text, most = 60) {
  const line = text.replace(/[\s\p{C}\p{Zl}\p{Zp}]+/gu, " ").trim();
  return line.length > most ? `${line.slice(0, most).trimEnd()}…` : line;
}
