// Orders entries of the activity by their time. Their numbers have another order: what is summed up is numbered when the sum ends.

// newestFirst orders rows by their times. A row without one, such as a note, stays behind the row that it follows.
export function newestFirst(rows, timeOf) {
  let above = Infinity;
  const timed = rows.map((row) => ({ row, time: (above = timeOf(row) ?? above) }));
  return timed.sort((a, b) => (a.time === b.time ? 0 : b.time - a.time)).map(({ row }) => row);
}

// newestID and oldestID give the ends of some numbers. Of other ids, such as those of log lines, these are the first and the last one.
export const newestID = (ids) => ids.reduce((a, b) => (Number(b) > Number(a) ? b : a));
export const oldestID = (ids) => ids.reduce((a, b) => (Number(a) < Number(b) ? a : b));

// orderEntries puts the children of a list into that order. It begins at the end, so that it is the new rows on top that move.
export function orderEntries(list) {
  const timeOf = (row) => {
    const time = row.querySelector("time[data-clock]");
    return time ? Date.parse(time.dateTime) : undefined;
  };
  const sorted = newestFirst([...list.children], timeOf);
  let below = null;
  for (const row of sorted.reverse()) {
    if (row.nextElementSibling !== below) list.insertBefore(row, below);
    below = row;
  }
}
