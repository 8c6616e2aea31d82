// What is asked before a paste, and what pasted files are called. No DOM in here.
const plainLines = 2; // where the program runs each line as it comes
const markedLines = 50; // where it is told that they are pasted, and waits
const endings = { "image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp", "image/svg+xml": "svg", "image/avif": "avif" };

export function linesOf(text) {
  return text.replace(/\r\n?/gu, "\n").replace(/\n$/u, "").split("\n").length;
}

// question is what to ask before text is pasted, or "". marked says whether the program knows pasted text from typed.
export function question(text, marked) {
  const lines = linesOf(text);
  if (lines < (marked ? markedLines : plainLines)) return "";
  const beginning = text.slice(0, 200).split(/\r\n?|\n/u).slice(0, 3).join("\n");
  const more = marked ? "" : "\n\nThe program runs each line as it comes.";
  return `Paste ${lines} lines into the terminal?${more}\n\n${beginning}${lines > 3 ? "\n…" : ""}`;
}

// nameFor is what a pasted or dropped file is called in the sandbox: a picture from the clipboard has no name worth keeping.
export function nameFor(file, dropped, now) {
  const stamp = now.toISOString().slice(0, 23).replace(/[:.]/gu, "-").replace("T", "_");
  if (!dropped) return `${stamp}.${endings[file.type] ?? "bin"}`;
  const name = file.name.normalize("NFC").replace(/[\p{C}/\\\p{Zl}\p{Zp}]+/gu, "_").replace(/^[.-]+/u, "").slice(-100);
  return `${stamp}-${name || "file"}`;
}

// quote is a path as a shell takes it.
export function quote(path) {
  return /^[\w@%+:,./-]+$/u.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

// filesOf are the files in what was pasted or dropped, or none where it is text that is wanted.
export function filesOf(data) {
  const files = [...(data?.files ?? [])];
  return files.length > 0 && !data.getData("text/plain") ? files : [];
}
