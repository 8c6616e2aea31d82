// Keeps relative times fresh, in the very words that the server uses (web/pages_time.go).
const steps = [
  [60, 1, "s"],
  [3600, 60, "min"],
  [86400, 3600, "h"],
  [7 * 86400, 86400, "d"],
];

// relative says a time in one of the forms of views.Time: "" (ago or ahead), "span" (how long it has lasted), "ahead"
// (when it is due, "now" once that is over).
export function relative(then, now, form = "") {
  const seconds = Math.round((now - then) / 1000);
  const size = form === "span" ? Math.max(seconds, 0) : Math.abs(seconds);
  if (form !== "span" && (size < 10 || (form === "ahead" && seconds > 0))) return "now";
  for (const [bound, unit, word] of steps) {
    if (size < bound || (word === "d" && form === "span")) {
      const text = `${Math.floor(size / unit)} ${word}`;
      if (form === "span") return text;
      return seconds < 0 ? `in ${text}` : `${text} ago`;
    }
  }
  return null; // older ones are dates, which do not change
}

function refresh() {
  const now = Date.now();
  for (const time of document.querySelectorAll("time[datetime]")) {
    const text = relative(Date.parse(time.dateTime), now, time.dataset.form);
    if (text && text !== time.textContent) time.textContent = text;
  }
}

if (globalThis.document) {
  refresh();
  setInterval(refresh, 10_000);
  document.addEventListener("visibilitychange", refresh);
}
