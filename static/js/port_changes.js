// Which ports to offer, without a DOM.

// changes compares the open ports with those before. The first call (before is null) offers nothing: only ports that open
// later are news.
export function changes(before, open) {
  const now = new Set(open);
  if (before === null) return { show: [], hide: [], known: now };
  const show = open.filter((number) => !before.has(number));
  const hide = [...before].filter((number) => !now.has(number));
  return { show, hide, known: now };
}
