// Moves the bars of work under way between two words of the server, and says how long it still takes. It counts as internal/pace does
// (pace_cases.json has cases for both), and speaks as web/pace.go does.
const steady = 0.8;

// position is how many of a pace's seconds are done when its present step has taken spent, or has not begun (-1).
export function position({ done, step, part }, spent) {
  if (spent < 0) return done;
  if (part > 0) return done + Math.min(part, 1) * step;
  const even = steady * step;
  if (spent <= even) return done + spent;
  const rest = step - even;
  return done + even + (rest && rest * (1 - Math.exp(-(spent - even) / rest)));
}

// late says whether the present step takes much longer than expected.
export const late = ({ step, part }, spent) => spent >= 0 && !part && spent > 1.25 * step + 5;

const about = (s) => {
  if (s < 10) return "a few seconds";
  if (s < 57.5) return `about ${5 * Math.round(s / 5)} s`;
  if (s < 3570) return `about ${Math.round(Math.max(s, 60) / 60)} min`;
  return `about ${Math.round(s / 3600)} h`;
};

// leftText says how long the work still takes.
export function leftText(pace, spent) {
  const left = Math.max(pace.total - position(pace, spent), 0);
  if (late(pace, spent)) return pace.measured ? "longer than last time" : "longer than estimated";
  if (spent < 0 && left > 10) return "waiting for another build";
  if (left < 1) return "almost done";
  return `${about(left)} left${pace.measured ? "" : " (estimate)"}`;
}

const seen = new WeakMap(); // when the server's word came

export function read({ dataset }) {
  const number = (name) => Number(dataset[name]);
  return { total: number("total"), done: number("done"), step: number("step"), part: number("part"), spent: number("spent"), measured: dataset.measured !== undefined };
}

// advance draws one of them as it is now, in seconds of the page's clock.
export function advance(element, now) {
  if (!seen.has(element)) seen.set(element, now);
  const pace = read(element);
  const spent = pace.spent < 0 ? -1 : pace.spent + now - seen.get(element);
  element.querySelector("progress").value = Math.min(position(pace, spent) / pace.total, 1);
  const left = element.querySelector("[data-left]");
  const text = leftText(pace, spent);
  if (left.textContent !== text) left.textContent = text;
}

function advanceAll() {
  if (document.hidden) return;
  for (const element of document.querySelectorAll("[data-pace]")) advance(element, performance.now() / 1000);
}

if (globalThis.document?.addEventListener) {
  advanceAll();
  setInterval(advanceAll, 500);
  document.addEventListener("sandboxd:parts", advanceAll);
  document.addEventListener("visibilitychange", advanceAll);
}
