// Escape sequences in text that is shown again later, and the controls that begin some in one character (U+0080 to U+009F).
const any =
  /\x1b\[[\d;:]*m|\x1b\[[0-?]*[ -/]*[@-~]?|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b.?|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]/gsu;
const colour = /^\x1b\[[\d;:]*m$/u;

// coloursOnly leaves the colours and drops every other sequence: a record commands nothing.
export function coloursOnly(text) {
  return text.replace(any, (s) => (colour.test(s) ? s : ""));
}
