// The logic of terminal tabs, without a DOM.
export const mostTabs = 16; // the sandbox's limit

// freshName returns the smallest free number, so that numbers of closed tabs are reused.
export function freshName(names) {
  for (let n = 2; n <= mostTabs + 1; n++) if (!names.includes(String(n))) return String(n);
  return null;
}

// labelOf returns a tab's default label.
export function labelOf(name) {
  return name === "main" ? "Terminal" : `Terminal ${name}`;
}

// tabNameOf returns a tab's name: the user's, else its program's title, else the default. With a title, tabs other than the
// first keep their number.
export function tabNameOf(name, title, label) {
  if (label) return label;
  if (!title) return labelOf(name);
  return name === "main" ? title : `${name}: ${title}`;
}

// cleanTitle makes a title from the sandbox, which may hold anything, one short line.
export function cleanTitle(title, longest = 60) {
  const line = String(title ?? "").replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ").trim();
  return line.length > longest ? `${line.slice(0, longest - 1)}…` : line;
}

// merge returns which tabs to add and to drop, given those open in the sandbox. A fresh tab is kept: the sandbox may not
// know it yet.
export function merge(shown, open, fresh) {
  return {
    add: open.filter((name) => !shown.includes(name)),
    drop: shown.filter((name) => name !== "main" && !open.includes(name) && !fresh.includes(name)),
  };
}

// neighbour returns the tab to show after one is closed.
export function neighbour(names, name) {
  const at = names.indexOf(name);
  return names[at + 1] ?? names[at - 1] ?? null;
}

// keepsTerminals says whether the terminals stay in the page when their pane becomes one of that kind: while the sandbox is
// asleep or is copied for a snapshot, and while it is being woken from a terminal.
export function keepsTerminals(kind, rests) {
  return ["terminals", "copied", "frozen", "sleeping", "asleep"].includes(kind) || (kind === "work" && rests);
}
