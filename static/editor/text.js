// Decodes text files and encodes them again byte for byte: line endings, byte order mark and the end of the last line are
// preserved. Text that is not UTF-8 is shown, but never written.

const bom = [0xef, 0xbb, 0xbf];
const looked = 8192; // bytes searched for a zero byte, which makes a file binary

// read returns {kind: "text" | "binary", text, how}. how is the format for write: {bom, eol, encoding}; only "UTF-8" can be
// written. eol is "\n", "\r\n", or "mixed", which keeps every \r in the text. part says that bytes is only the beginning of
// a file and may end within a character.
export function read(bytes, part = false) {
  const wide = wideOf(bytes);
  if (wide) return { kind: "text", ...lines(new TextDecoder(wide).decode(bytes)), how: { bom: true, eol: "\n", encoding: wide.toUpperCase() } };
  if (bytes.subarray(0, looked).includes(0)) return { kind: "binary" };
  const marked = bom.every((b, i) => bytes[i] === b);
  const body = marked ? bytes.subarray(3) : bytes;
  const text = utf8(body, part);
  if (text === null) {
    const { text: shown } = lines(new TextDecoder("windows-1252").decode(body));
    return { kind: "text", text: shown, how: { bom: marked, eol: "\n", encoding: "not UTF-8" } };
  }
  const { text: shown, eol } = lines(text);
  return { kind: "text", text: shown, how: { bom: marked, eol, encoding: "UTF-8" } };
}

function wideOf(bytes) {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return "utf-16le";
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return "utf-16be";
  return "";
}

function utf8(bytes, part) {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes, { stream: part });
  } catch {
    return null;
  }
}

// lines returns the text with "\n" line endings, and the original ones.
function lines(text) {
  if (!text.includes("\r")) return { text, eol: "\n" };
  const bare = /\r(?!\n)|(?<!\r)\n/.test(text);
  return bare ? { text, eol: "mixed" } : { text: text.replaceAll("\r\n", "\n"), eol: "\r\n" };
}

// write encodes a text.
export function write(text, how) {
  const body = new TextEncoder().encode(how.eol === "\r\n" ? text.replaceAll("\n", "\r\n") : text);
  if (!how.bom) return body;
  const out = new Uint8Array(body.length + 3);
  out.set(bom);
  out.set(body, 3);
  return out;
}

// completeLines drops a last line that may be incomplete.
export function completeLines(text) {
  const end = text.lastIndexOf("\n");
  return end > 0 ? text.slice(0, end + 1) : text;
}

const sampled = 2000; // lines

// indentOf guesses the indentation of a text: "\t" or spaces. usual is for texts without any.
export function indentOf(text, usual = "  ") {
  const steps = new Map();
  let tabs = 0;
  let spaces = 0;
  let before = 0;
  for (const line of text.split("\n", sampled)) {
    if (!line.trim()) continue;
    const lead = /^[\t ]*/.exec(line)[0];
    if (lead.startsWith("\t")) tabs++;
    else if (lead) spaces++;
    const step = Math.abs(lead.length - before);
    if (!lead.startsWith("\t") && step > 1 && step <= 8 && !/^\s*\*/.test(line)) steps.set(step, (steps.get(step) ?? 0) + 1);
    before = lead.startsWith("\t") ? 0 : lead.length;
  }
  if (tabs > spaces) return "\t";
  if (!spaces) return tabs ? "\t" : usual;
  const [step] = [...steps].sort((a, b) => b[1] - a[1] || a[0] - b[0])[0] ?? [usual.length];
  return " ".repeat(step);
}

// hex formats bytes as a hex editor does: [{offset, bytes, text}].
export function hex(bytes, width = 16) {
  const out = [];
  for (let at = 0; at < bytes.length; at += width) {
    const row = bytes.subarray(at, at + width);
    out.push({
      offset: at.toString(16).padStart(8, "0"),
      bytes: Array.from(row, (b) => b.toString(16).padStart(2, "0")).join(" ").padEnd(width * 3 - 1),
      text: Array.from(row, (b) => (b > 0x1f && b < 0x7f ? String.fromCharCode(b) : "·")).join(""),
    });
  }
  return out;
}
