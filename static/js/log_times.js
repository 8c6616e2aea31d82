// Formats the times of log lines and entries as the server does (web/pages_logs.go, web/activity_words.go), in this computer's zone.
const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (n) => String(n).padStart(2, "0");

// dateTime formats a moment: the time of day to the millisecond, or the date too when that is not today's.
export function dateTime(date, now) {
  const clock = `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
  if (date.toDateString() === now.toDateString()) return `${clock}.${String(date.getMilliseconds()).padStart(3, "0")}`;
  return `${date.getDate()} ${months[date.getMonth()]} ${clock}`;
}

// clock formats the time of day to the minute.
export const clock = (date) => `${two(date.getHours())}:${two(date.getMinutes())}`;

const longMonths = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const weekdays = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

// day names the day of a moment.
export function day(date, now) {
  if (date.toDateString() === now.toDateString()) return "Today";
  const before = new Date(now.getFullYear(), now.getMonth(), now.getDate() - 1);
  if (date.toDateString() === before.toDateString()) return "Yesterday";
  return `${weekdays[date.getDay()]} ${date.getDate()} ${longMonths[date.getMonth()]} ${date.getFullYear()}`;
}
