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

const anywhere = { k: { palette: "commands" } };
const inWorkspace = { ...anywhere, p: { palette: "files" }, b: { toggle: "files" } };

// paletteKeys names the keys that open the palette, for a button.
export function paletteKeys({ mac, terminal }) {
  return mac ? "⌘K" : terminal ? "Ctrl ⇧ K" : "Ctrl K";
}

// wanted returns the action of a key with a modifier, or null. Ctrl+K, Ctrl+P and Ctrl+B are keys of the shell, so a terminal that
// has the focus keeps them; there Shift is held as well. On a Mac they are ⌘K, ⌘P and ⌘B everywhere.
export function wanted(event, { mac, terminal, workspace, signedIn }) {
  if (!signedIn || event.altKey || event.isComposing) return null;
  if (workspace && event.code === "Backquote" && event.ctrlKey && !event.metaKey && !event.shiftKey) return { toggle: "terminal" };
  const held = mac ? event.metaKey && !event.ctrlKey && !event.shiftKey : event.ctrlKey && !event.metaKey && event.shiftKey === terminal;
  if (!held) return null;
  const letter = /^[a-z]$/i.test(event.key) ? event.key : (/^Key(.)$/.exec(event.code)?.[1] ?? ""); // also on keyboards of other scripts
  return (workspace ? inWorkspace : anywhere)[letter.toLowerCase()] ?? null;
}
