// Keeps relative times fresh, in the very words that the server uses (web/pages_time.go).
const steps = [
  [60, 1, "s"],
  [3600, 60, "min"],
  [86400, 3600, "h"],
  [7 * 86400, 86400, "d"],
];

export function relative(then, now) {
  const seconds = Math.round((now - then) / 1000);
  const size = Math.abs(seconds);
  if (size < 10) return "now";
  for (const [bound, unit, word] of steps) {
    if (size < bound) {
      const text = `${Math.floor(size / unit)} ${word}`;
      return seconds < 0 ? `in ${text}` : `${text} ago`;
    }
  }
  return null; // older ones are dates, which do not change
}

function refresh() {
  const now = Date.now();
  for (const time of document.querySelectorAll("time[datetime]")) {
    const text = relative(Date.parse(time.dateTime), now);
    if (text && text !== time.textContent) time.textContent = text;
  }
}

if (globalThis.document) {
  refresh();
  setInterval(refresh, 10_000);
  document.addEventListener("visibilitychange", refresh);
}
