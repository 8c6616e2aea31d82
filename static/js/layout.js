// How the workspace's panes share their room, without a DOM. A pane is {id, share, hidden, empty, side}. Shares are thousandths of
// the room; when panes are hidden, the others divide it by their shares. A side pane has a width of its own. An empty pane shows
// nothing.
const whole = 1000;

// shown are the panes beside the sidebar that can be seen: all that are not empty when each of these is hidden.
export function shown(panes) {
  const full = panes.filter((p) => !p.side && !p.empty);
  const seen = full.filter((p) => !p.hidden);
  return seen.length ? seen : full;
}

// visible are all panes that can be seen.
export function visible(panes) {
  const main = shown(panes);
  return panes.filter((p) => (p.side ? !p.hidden : main.includes(p)));
}

// paneBefore returns the nearest pane before id that shares the room with it and can be seen, or null.
export function paneBefore(panes, id) {
  const before = panes.slice(0, panes.findIndex((p) => p.id === id));
  return shown(panes).findLast((p) => before.includes(p)) ?? null;
}

// fitsBeside says whether the panes are beside each other in a window of a width, where the person has not chosen: in a wide one, and in one
// of medium width where they are the chat and one other.
export function fitsBeside(panes, width) {
  const seen = shown(panes);
  return width === "wide" || (width === "medium" && seen.length === 2 && seen.some((p) => p.id === "chat"));
}

// resize gives the pane before id the wanted part (0 to 1) of the room of both. Each keeps at least least of it.
export function resize(panes, id, wanted, least) {
  const left = paneBefore(panes, id);
  const right = panes.find((p) => p.id === id);
  if (!left) return panes;
  const both = left.share + right.share;
  const part = Math.min(Math.max(wanted, least), 1 - least);
  const share = Math.min(Math.max(Math.round(both * part), 1), both - 1);
  return panes.map((p) => (p === left ? { ...p, share } : p === right ? { ...p, share: both - share } : p));
}

// ratio returns the part (0 to 1) of the pane before id.
export function ratio(panes, id) {
  const left = paneBefore(panes, id);
  const right = panes.find((p) => p.id === id);
  return left ? left.share / (left.share + right.share) : 0;
}

// hide hides a pane. The last one beside the sidebar stays.
export function hide(panes, id) {
  const seen = shown(panes);
  if (seen.length === 1 && seen[0].id === id) return panes;
  return panes.map((p) => (p.id === id ? { ...p, hidden: true } : p));
}

export function reveal(panes, id) {
  return panes.map((p) => (p.id === id ? { ...p, hidden: false } : p));
}

// serialize returns the panes as the server stores them.
export function serialize(panes) {
  return Object.fromEntries(panes.map(({ id, share, hidden, side }) => [id, side ? { hidden } : { share: Math.min(Math.max(share, 1), whole), hidden }]));
}

// restore returns the panes with what the server stored of them, and their default shares for what it did not.
export function restore(panes, kept = {}) {
  return panes.map((p) => ({ ...p, share: kept[p.id]?.share || p.usual, hidden: kept[p.id] ? (kept[p.id].hidden ?? false) : (p.hides ?? false) }));
}
