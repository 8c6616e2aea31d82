// Formats the times of log lines as the server does (web/pages_logs.go), in this computer's zone.
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (n) => String(n).padStart(2, "0");

// dateTime formats a moment: the time of day to the millisecond, or the date too when that is not today's.
export function dateTime(date, now) {
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  if (date.toDateString() === now.toDateString()) return `${clock}.${String(date.getMilliseconds()).padStart(3, "0")}`;
  return `${date.getDate()} ${months[date.getMonth()]} ${clock}`;
}
