// The meaning of keys, without a DOM.
const patience = 900; // ms between the two keys of "g s"
let goUntil = 0;

const go = { s: "/", t: "/templates", b: "/backups", l: "/logs", a: "/activity", n: "/alerts" };

// shortcut returns the action of a key, or null. In a workspace most keys are meant for the terminal or the editor that had
// the focus a moment ago, so only the help opens there.
export function shortcut(key, now, workspace = false) {
  if (workspace && key !== "?") return null;
  if (now < goUntil && go[key]) {
    goUntil = 0;
    return { go: go[key] };
  }
  goUntil = key === "g" ? now + patience : 0;
  switch (key) {
    case "c":
      return { sheet: "/new" };
    case "/":
      return { focus: "filter" };
    case "?":
      return { dialog: "help" };
  }
  return null;
}
