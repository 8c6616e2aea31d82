const firstDelay = 250; // ms
const longestDelay = 10_000; // ms

// delayAfter is how long to wait before the next attempt, in ms, after so many that failed. chance is from 0 to 1.
export function delayAfter(failures, chance = Math.random()) {
  const whole = Math.min(longestDelay, firstDelay * 2 ** Math.min(failures, 10));
  return whole / 2 + (whole / 2) * chance;
}
