// What a sandbox used, as the server sends it (web/metrics_columns.go): takes in what comes live, and says what to draw.

const rates = ["cpu", "rx", "tx", "read", "write"]; // means of a step; the others are the most within it

// append takes in a tick (web/live_metrics.go). A series that ends now moves on with it. It returns whether a figure came.
export function append(series, tick) {
  const width = series.until - series.since;
  if (tick.now > series.until) {
    series.until = tick.now;
    series.since = tick.now - width;
  }
  fill(series, tick.now);
  const came = Boolean(tick.figures) && tick.time + tick.measured > (series.known ?? 0) && add(series, tick);
  trim(series);
  return came;
}

// fill adds steps without figures until now.
function fill(series, now) {
  const { time, step, measured, columns } = series;
  if (!time.length) time.push(now - (now % step));
  for (let next = time.at(-1) + step; next <= now && time.length < 10_000; next += step) time.push(next);
  for (const column of [measured, ...Object.values(columns)]) while (column.length < time.length) column.push(null);
}

// add puts figures into the steps that they are of, each as far as it is.
function add(series, { time: at, measured: seconds, figures }) {
  const { time, step } = series;
  let came = false;
  for (let i = Math.max(0, Math.floor((at - time[0]) / step)); i < time.length && time[i] < at + seconds; i++) {
    const part = Math.min(at + seconds, time[i] + step) - Math.max(at, time[i]);
    if (part <= 0) continue;
    merge(series, i, part, figures);
    came = true;
  }
  if (came) series.known = at + seconds;
  return came;
}

// merge adds figures of some seconds to those of a step.
function merge({ measured, columns }, i, seconds, figures) {
  const before = measured[i] ?? 0;
  for (const [name, column] of Object.entries(columns)) {
    const value = figures[name] ?? 0;
    if (!before) column[i] = value;
    else if (rates.includes(name)) column[i] = (column[i] * before + value * seconds) / (before + seconds);
    else column[i] = name === "limit" ? value : Math.max(column[i], value);
  }
  measured[i] = before + seconds;
}

// trim removes steps that are over before the series begins.
function trim(series) {
  const { time, step, measured, columns } = series;
  let n = 0;
  while (n < time.length - 1 && time[n] + step < series.since - step) n++;
  if (n) for (const column of [time, measured, ...Object.values(columns)]) column.splice(0, n);
}

// anything says whether anything was measured.
export function anything(series) {
  return series.measured.some((seconds) => seconds !== null);
}

// stateAt returns the state at a time, or "" when it is not known.
export function stateAt(changes, time) {
  let state = "";
  for (const change of changes) {
    if (change.time > time) break;
    state = change.state;
  }
  return state;
}

const bandOf = { frozen: "frozen", sleeping: "asleep", asleep: "asleep", stopped: "stopped", failed: "failed" };

// bands returns the stretches in which a sandbox did not run: [{kind, from, to}].
export function bands({ changes, since, until }) {
  const found = [];
  changes.forEach(({ time, state }, i) => {
    const kind = bandOf[state];
    const from = Math.max(time, since);
    const to = Math.min(changes[i + 1]?.time ?? until, until);
    if (!kind || to <= from) return;
    const before = found.at(-1);
    if (before?.kind === kind && before.to === from) before.to = to;
    else found.push({ kind, from, to });
  });
  return found;
}

// marks returns what happened within the series.
export function marks({ changes, since, until }) {
  return changes.filter(({ mark, time }) => mark && time >= since && time <= until);
}

// grouped puts marks that would overlap together: [{x, mark, all, room}]. room is how far it is to the next one, or the end.
export function grouped(list, toX, width, apart) {
  const groups = [];
  for (const one of list) {
    const x = toX(one.time);
    const last = groups.at(-1);
    if (last && x - last.x < apart) {
      last.all.push(one);
      if (one.mark === "oom") last.mark = one.mark; // the one that matters most
    } else groups.push({ x, mark: one.mark, all: [one] });
  }
  groups.forEach((group, i) => (group.room = (groups[i + 1]?.x ?? width) - group.x));
  return groups;
}

// peak returns the largest value of columns within a stretch, and 0 where there is none.
export function peak(series, names) {
  let most = 0;
  series.time.forEach((time, i) => {
    if (time < series.since - series.step || time > series.until) return;
    for (const name of names) most = Math.max(most, series.columns[name][i] ?? 0);
  });
  return most;
}

// crossed says whether a line of some columns runs through a box of times and values.
export function crossed({ time, columns }, names, { from, to, low, high }) {
  const through = (values, i) => {
    const [a, b] = [values[i - 1] ?? null, values[i] ?? null];
    if (b === null || time[i] < from || (time[i - 1] ?? time[i]) > to) return false;
    if (a === null) return time[i] <= to && b >= low && b <= high; // a point alone, or the first of a line
    const at = (t) => a + ((b - a) * (t - time[i - 1])) / (time[i] - time[i - 1]);
    const [start, end] = [at(Math.max(from, time[i - 1])), at(Math.min(to, time[i]))];
    return Math.max(start, end) >= low && Math.min(start, end) <= high;
  };
  return names.some((name) => time.some((_, i) => through(columns[name], i)));
}

// lastOf returns the newest figure of a column, or null.
export function lastOf(series, name) {
  return series.columns[name].findLast((value) => value !== null) ?? null;
}

const recent = 30; // s within which a figure is of now: some are read every ten seconds only

// present returns the step with the figures of now. While nothing is measured it is the last one.
export function present(series) {
  const { time, measured, step, until, changes } = series;
  const last = time.length - 1;
  if (!["", "running"].includes(stateAt(changes, until))) return last;
  const i = measured.findLastIndex((seconds) => seconds !== null);
  return i >= 0 && time[i] >= until - Math.max(recent, 2 * step) ? i : last;
}

// top returns where the axis of a plot ends. A limit is in sight once a quarter of it is used; else it would flatten the rest.
export function top(most, limit, least) {
  const high = Math.max(most * 1.15, least);
  return limit && most >= limit / 4 ? Math.max(high, limit * 1.08) : high;
}

// within keeps a stretch between two times, and at least so long.
export function within({ since, until }, oldest, newest, least) {
  let [from, to] = since < until ? [since, until] : [until, since];
  if (to - from < least) {
    const middle = (from + to) / 2;
    [from, to] = [middle - least / 2, middle + least / 2];
  }
  if (to > newest) [from, to] = [Math.max(oldest, from - (to - newest)), newest];
  if (from < oldest) [from, to] = [oldest, Math.min(newest, to + (oldest - from))];
  return { since: from, until: to };
}

// scaled makes a stretch longer (or shorter) by a factor, around a time.
export function scaled({ since, until }, factor, around = (since + until) / 2) {
  return { since: around - (around - since) * factor, until: around + (until - around) * factor };
}
