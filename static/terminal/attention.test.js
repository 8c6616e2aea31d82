import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Attention, isWatched } from "./attention.js";

const minute = 60_000;

beforeEach(() => mock.timers.enable({ apis: ["setInterval", "Date"] }));
afterEach(() => mock.timers.reset());

// pass advances minute by minute: within one tick all timers see its end.
function pass(minutes) {
  for (let n = 0; n < minutes; n++) mock.timers.tick(minute);
}

// A fake page: its state and its events.
class Page extends EventTarget {
  visibilityState = "visible";
  focused = true;
  hasFocus() {
    return this.focused;
  }
  moves(kind = "pointermove") {
    this.dispatchEvent(new Event(kind));
  }
}

// watch returns a page and how often its Attention reported.
function watch() {
  const away = new AbortController();
  const w = { page: new Page(), notes: 0, away };
  new Attention(w.page, () => w.notes++, away.signal);
  return w;
}

test("a page without input is not watched", () => {
  const w = watch();
  pass(60);
  assert.equal(w.notes, 0);
});

test("input is reported at once, then once a minute for ten minutes", () => {
  const w = watch();
  for (const kind of ["pointerdown", "pointermove", "keydown", "wheel", "touchstart"]) w.page.moves(kind);
  assert.equal(w.notes, 1);
  mock.timers.tick(minute / 2);
  w.page.moves();
  assert.equal(w.notes, 1);
  pass(24 * 60);
  assert.ok(w.notes >= 10 && w.notes <= 12, `${w.notes} notes`);
});

test("a hidden or unfocused page is not watched", () => {
  const w = watch();
  w.page.focused = false;
  w.page.moves("wheel");
  pass(5);
  w.page.focused = true;
  w.page.visibilityState = "hidden";
  pass(2);
  assert.equal(w.notes, 0);
  w.page.visibilityState = "visible";
  pass(1);
  assert.equal(w.notes, 1);
});

test("an aborted watch stops", () => {
  const w = watch();
  w.page.moves();
  w.away.abort();
  w.page.moves();
  pass(5);
  assert.equal(w.notes, 1);
});

test("a page counts as watched for ten minutes after the last input", () => {
  const page = new Page();
  assert.ok(isWatched(page, 0, 10 * minute));
  assert.ok(!isWatched(page, 0, 10 * minute + 1));
  assert.ok(!isWatched(page, -Infinity, 0));
});
