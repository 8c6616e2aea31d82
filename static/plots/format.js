// Formats figures and times for plots.
import { size } from "../files/format.js";

export { size };

// cores formats a number of CPU cores, with as many digits as tell two small ones apart.
export function cores(n) {
  return n >= 100 ? n.toFixed(0) : n >= 10 ? n.toFixed(1) : n.toFixed(2);
}

// coresLimit formats a limit: "1 core", "1.5 cores".
export function coresLimit(n) {
  return `${Number(n.toFixed(2))} ${n === 1 ? "core" : "cores"}`;
}

// rate formats bytes in a second.
export function rate(bytes) {
  return `${size(bytes)}/s`;
}

// many formats a number of things: "950", "12.3 k", "4 M".
export function many(n) {
  for (const [unit, each] of [["G", 1e9], ["M", 1e6], ["k", 1e4]]) {
    const size = unit === "k" ? 1e3 : each;
    if (n >= each) return `${Number((n / size).toPrecision(3))} ${unit}`;
  }
  return String(Math.round(n));
}

// dollars formats an amount of money, with the digits that a small one needs.
export function dollars(n) {
  return `$${n === 0 || n >= 1 ? n.toFixed(2) : Number(n.toPrecision(2)).toFixed(Math.min(6, Math.max(2, 1 - Math.floor(Math.log10(n)))))}`;
}

const months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const two = (n) => String(n).padStart(2, "0");

const day = (date) => `${date.getDate()} ${months[date.getMonth()]}`;
const minute = (date) => `${two(date.getHours())}:${two(date.getMinutes())}`;
const second = (date) => `${minute(date)}:${two(date.getSeconds())}`;

// axisTimes formats the times of an axis, which are so many seconds apart: a date where a day begins, else the time of day.
export function axisTimes(times, apart) {
  return times.map((time) => {
    const date = new Date(time * 1000);
    if (apart >= 86400 || (date.getHours() === 0 && date.getMinutes() === 0 && date.getSeconds() === 0)) return day(date);
    return apart >= 60 ? minute(date) : second(date);
  });
}

// exact formats a moment, in seconds. step says how exact it is.
export function exact(time, step = 1) {
  const date = new Date(time * 1000);
  return `${day(date)} ${step >= 60 ? minute(date) : second(date)}`;
}

// iso formats a moment for an address, to the second.
export function iso(time) {
  return new Date(Math.round(time) * 1000).toISOString().replace(".000", "");
}
