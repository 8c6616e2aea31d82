// Escape sequences in text that is shown again later, and the C1 controls (U+0080 to U+009F) that start some of them.
const any =
  /\x1b\[[\d;:]*m|\x1b\[[0-?]*[ -/]*[@-~]?|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]/gsu;
const colour = /^\x1b\[[\d;:]*m$/u;

// coloursOnly removes every sequence except colours, so that a recording cannot control the terminal.
export function coloursOnly(text) {
  return text.replace(any, (s) => (colour.test(s) ? s : ""));
}

export function plainText(text) {
  return text.replace(any, "");
}
