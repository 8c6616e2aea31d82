// The rules of a row of terminal tabs, without any DOM.
export const mostTabs = 16; // as the sandbox allows

// freshName gives the smallest number that no tab has, so that a closed tab's name is used again.
export function freshName(names) {
  for (let n = 2; n <= mostTabs + 1; n++) if (!names.includes(String(n))) return String(n);
  return null;
}

// labelOf is what a tab is called while its program has given no title.
export function labelOf(name) {
  return name === "main" ? "Terminal" : `Terminal ${name}`;
}

// nameOf is what a tab is called: as people have named it, else with the title that its program has given. Tabs beyond the
// first keep their number then.
export function nameOf(name, title, label) {
  if (label) return label;
  if (!title) return labelOf(name);
  return name === "main" ? title : `${name}: ${title}`;
}

// cleanTitle makes one short line of a title, which comes from the sandbox.
export function cleanTitle(title, longest = 60) {
  const line = String(title ?? "").replace(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ").trim();
  return line.length > longest ? `${line.slice(0, longest - 1)}…` : line;
}

// merge says which tabs to add and which to drop when the sandbox says which ones are open. A tab that this window
// has just opened is not dropped, because the sandbox may not know it yet.
export function merge(shown, open, fresh) {
  return {
    add: open.filter((name) => !shown.includes(name)),
    drop: shown.filter((name) => name !== "main" && !open.includes(name) && !fresh.includes(name)),
  };
}

// neighbour is the tab to show when one is closed.
export function neighbour(names, name) {
  const at = names.indexOf(name);
  return names[at + 1] ?? names[at - 1] ?? null;
}

// keepsTerminals says whether the terminals of a page stay when the sandbox's pane becomes one of that kind: while it
// sleeps, and while it is on its way up for a terminal that is at rest with it.
export function keepsTerminals(kind, rests) {
  return ["terminals", "frozen", "sleeping", "asleep"].includes(kind) || (kind === "work" && rests);
}
