// Selecting text by keyboard, without a DOM. A position is {row, col}; a page is {rows, cols, height, text(row)}.

// start returns a caret without a selection.
export function start(row, col = 0) {
  return { row, col, from: null, marked: false };
}

// press returns the caret after a key, or null for a key that does not move it. key is as in KeyboardEvent.
export function press(caret, key, { shift = false, ctrl = false }, page) {
  if (ctrl && key.toLowerCase() === "a") return { ...end(page), from: { row: 0, col: 0 }, marked: false };
  const to = go(caret, key, ctrl, page);
  if (!to) return null;
  const from = shift ? (caret.from ?? place(caret)) : caret.marked ? caret.from : null;
  return { ...to, from, marked: caret.marked };
}

// toggleMark starts or stops selecting without Shift.
export function toggleMark(caret) {
  return caret.marked ? { ...caret, from: null, marked: false } : { ...caret, from: place(caret), marked: true };
}

function place({ row, col }) {
  return { row, col };
}

function end(page) {
  const row = page.rows - 1;
  return { row, col: last(page, row) };
}

// last returns the column of a line's last character.
function last(page, row) {
  return Math.max(page.text(row).length - 1, 0);
}

function go({ row, col }, key, ctrl, page) {
  const line = (to) => {
    const r = Math.min(Math.max(to, 0), page.rows - 1);
    return { row: r, col: Math.min(col, page.cols - 1) };
  };
  switch (key) {
    case "ArrowUp":
      return line(row - 1);
    case "ArrowDown":
      return line(row + 1);
    case "PageUp":
      return line(row - page.height);
    case "PageDown":
      return line(row + page.height);
    case "Home":
      return ctrl ? { row: 0, col: 0 } : { row, col: 0 };
    case "End":
      return ctrl ? end(page) : { row, col: last(page, row) };
    case "ArrowLeft":
      return ctrl ? word(row, col, -1, page) : back(row, col, page);
    case "ArrowRight":
      return ctrl ? word(row, col, 1, page) : forth(row, col, page);
  }
  return null;
}

function back(row, col, page) {
  if (col > 0) return { row, col: col - 1 };
  return row > 0 ? { row: row - 1, col: last(page, row - 1) } : { row, col };
}

function forth(row, col, page) {
  if (col < last(page, row)) return { row, col: col + 1 };
  return row < page.rows - 1 ? { row: row + 1, col: 0 } : { row, col };
}

// word moves to the start of the next or previous word, stopping at line breaks.
function word(row, col, step, page) {
  const solid = (c) => c >= 0 && /\S/u.test(page.text(row)[c] ?? " ");
  let at = col;
  if (step > 0) {
    while (solid(at)) at++;
    while (at <= last(page, row) && !solid(at)) at++;
    return at <= last(page, row) ? { row, col: at } : forth(row, last(page, row), page);
  }
  at--;
  while (at > 0 && !solid(at)) at--;
  while (at > 0 && solid(at - 1)) at--;
  return at >= 0 ? { row, col: at } : back(row, 0, page);
}

// selection returns the selection as {row, col, length} in cells; without one, the caret's cell.
export function selection(caret, cols) {
  const [a, b] = [caret.from ?? caret, caret].sort((x, y) => x.row - y.row || x.col - y.col);
  return { row: a.row, col: a.col, length: (b.row - a.row) * cols + b.col - a.col + 1 };
}
