// Updates relative times, worded as the server does (web/pages_time.go).
const steps = [
  [60, 1, "s"],
  [3600, 60, "min"],
  [86400, 3600, "h"],
  [Infinity, 86400, "d"],
];
const week = 7 * 86400;
const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// clock formats the time of day of a moment ahead in this computer's zone, with the day when that is not today.
function clock(then, now) {
  const at = new Date(then);
  const time = `${String(at.getHours()).padStart(2, "0")}:${String(at.getMinutes()).padStart(2, "0")}`;
  if (then - now >= 6 * 86400_000) return `${weekdays[at.getDay()]} ${at.getDate()} ${months[at.getMonth()]} ${time}`;
  return at.toDateString() === new Date(now).toDateString() ? time : `${weekdays[at.getDay()]} ${time}`;
}

// relative formats a time in one of the forms of views.Time: "" (past or future), "span" (elapsed), "left" (until then), "ahead"
// (due, to the second, then "now"), "until" (the time of day).
export function relative(then, now, form = "") {
  if (form === "until") return clock(then, now);
  const seconds = Math.round((now - then) / 1000);
  const length = form === "span" || form === "left";
  const size = length ? Math.max(form === "span" ? seconds : -seconds, 0) : Math.abs(seconds);
  if (form === "ahead" && seconds >= 0) return "now";
  if (form === "" && size < 10) return seconds < 0 ? "now" : "just now";
  if (!length && size >= week) return null; // shown as a date, which does not change
  const nearest = (unit) => Math.round(size / unit);
  const [, unit, word] = steps.find(([bound, unit]) => nearest(unit) * unit < bound);
  const text = `${nearest(unit)} ${word}`;
  if (length) return text;
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

// refresh updates all times, or only those counted in seconds.
function refresh(seconds) {
  const now = Date.now();
  for (const time of document.querySelectorAll("time[datetime]:not([data-exact])")) {
    if (seconds && !time.textContent.endsWith(" s")) continue;
    const text = relative(Date.parse(time.dateTime), now, time.dataset.form);
    if (text && text !== time.textContent) time.textContent = text;
  }
}

if (globalThis.document) {
  refresh(false);
  setInterval(() => refresh(false), 10_000);
  setInterval(() => document.hidden || refresh(true), 1000);
  for (const kind of ["visibilitychange", "htmx:load", "sandboxd:parts"]) document.addEventListener(kind, () => refresh(false));
}
