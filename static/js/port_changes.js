// Which ports to offer, without any DOM. A port is {number, open}; offered holds the numbers that were offered and have not
// been closed since.

// changes says what to show and what to take away when the open ports are these. The first look offers nothing: what is
// open when a page opens is no news.
export function changes(before, open) {
  const now = new Set(open);
  if (before === null) return { show: [], hide: [], known: now };
  const show = open.filter((number) => !before.has(number));
  const hide = [...before].filter((number) => !now.has(number));
  return { show, hide, known: now };
}
