// How the workspace's panes share its width, without a DOM. A pane is {id, share, hidden}. Shares are thousandths of the
// width; when panes are hidden, the others divide the width by their shares.
const whole = 1000;

export function visible(panes) {
  return panes.filter((p) => !p.hidden);
}

// paneBefore returns the nearest visible pane before id, or null.
export function paneBefore(panes, id) {
  const at = panes.findIndex((p) => p.id === id);
  return visible(panes.slice(0, at)).at(-1) ?? null;
}

// resize gives the pane before id the wanted part (0 to 1) of the width of both. Each keeps at least least of it.
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

// toggle shows or hides a pane. The last visible one stays.
export function toggle(panes, id) {
  const seen = visible(panes);
  if (seen.length === 1 && seen[0].id === id) return panes;
  return panes.map((p) => (p.id === id ? { ...p, hidden: !p.hidden } : p));
}

export function reveal(panes, id) {
  return panes.map((p) => (p.id === id ? { ...p, hidden: false } : p));
}

// serialize returns the panes as the server stores them.
export function serialize(panes) {
  return Object.fromEntries(panes.map(({ id, share, hidden }) => [id, { share: Math.min(Math.max(share, 1), whole), hidden }]));
}
