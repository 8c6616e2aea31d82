// How the workspace's panes share its width, without any DOM. A pane is {id, share, hidden}; shares are thousandths of
// the width for as long as all panes can be seen, and weights beside each other when some are put away.
const whole = 1000;

// shown gives the panes that can be seen.
export function visible(panes) {
  return panes.filter((p) => !p.hidden);
}

// before gives the nearest pane before id that can be seen, or null.
export function paneBefore(panes, id) {
  const at = panes.findIndex((p) => p.id === id);
  return visible(panes.slice(0, at)).at(-1) ?? null;
}

// resize moves the splitter at the left edge of a pane so that the pane before it gets wanted of what both have, from 0
// to 1. least is what each of them keeps, in the same measure.
export function resize(panes, id, wanted, least) {
  const left = paneBefore(panes, id);
  const right = panes.find((p) => p.id === id);
  if (!left) return panes;
  const both = left.share + right.share;
  const part = Math.min(Math.max(wanted, least), 1 - least);
  const share = Math.min(Math.max(Math.round(both * part), 1), both - 1);
  return panes.map((p) => (p === left ? { ...p, share } : p === right ? { ...p, share: both - share } : p));
}

// ratio is how much of both a splitter gives to the pane before it, from 0 to 1.
export function ratio(panes, id) {
  const left = paneBefore(panes, id);
  const right = panes.find((p) => p.id === id);
  return left ? left.share / (left.share + right.share) : 0;
}

// toggle shows or hides a pane. The last one stays.
export function toggle(panes, id) {
  const seen = visible(panes);
  if (seen.length === 1 && seen[0].id === id) return panes;
  return panes.map((p) => (p.id === id ? { ...p, hidden: !p.hidden } : p));
}

// reveal shows a pane.
export function reveal(panes, id) {
  return panes.map((p) => (p.id === id ? { ...p, hidden: false } : p));
}

// serialize is the panes as they are kept.
export function serialize(panes) {
  return Object.fromEntries(panes.map(({ id, share, hidden }) => [id, { share: Math.min(Math.max(share, 1), whole), hidden }]));
}
