// What the keys of the page mean. It knows no page, so that it can be tested.
const patience = 900; // ms between the two keys of "g s"
let goUntil = 0;

const go = { s: "/", t: "/templates" };

// shortcut gives the action of a key, or nothing. In a workspace a key is most likely meant for what had the focus a moment
// ago, so that only the help opens there.
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
