// Confirmation of large pastes, and names for pasted files. No DOM in here.
const plainLines = 2; // lines to ask from when the program runs each line at once
const markedLines = 50; // lines to ask from with bracketed paste
const endings = { "image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp", "image/svg+xml": "svg", "image/avif": "avif" };

export function linesOf(text) {
  return text.replace(/\r\n?/gu, "\n").replace(/\n$/u, "").split("\n").length;
}

// question returns what to ask before pasting a text, or null. marked says whether bracketed paste is on.
export function question(text, marked) {
  const lines = linesOf(text);
  if (lines < (marked ? markedLines : plainLines)) return null;
  const beginning = text.slice(0, 200).split(/\r\n?|\n/u).slice(0, 3).join("\n");
  return {
    title: `Paste ${lines} lines into the terminal?`,
    text: marked ? "" : "The program will run each line at once.",
    detail: `${beginning}${lines > 3 ? "\n…" : ""}`,
    act: "Paste",
  };
}

// nameFor returns the name of a pasted or dropped file in the sandbox. Images from the clipboard have no useful name.
export function nameFor(file, dropped, now) {
  const stamp = now.toISOString().slice(0, 23).replace(/[:.]/gu, "-").replace("T", "_");
  if (!dropped) return `${stamp}.${endings[file.type] ?? "bin"}`;
  const name = file.name.normalize("NFC").replace(/[\p{C}/\\\p{Zl}\p{Zp}]+/gu, "_").replace(/^[.-]+/u, "").slice(-100);
  return `${stamp}-${name || "file"}`;
}

// quote quotes a path for a shell.
export function quote(path) {
  return /^[\w@%+:,./-]+$/u.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

// filesOf returns the pasted or dropped files, or none when there is text too.
export function filesOf(data) {
  const files = [...(data?.files ?? [])];
  return files.length > 0 && !data.getData("text/plain") ? files : [];
}
