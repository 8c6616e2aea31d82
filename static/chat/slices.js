// Work that may wait is done in short slices: while the browser is idle, or, while the person scrolls and it hardly is, in each frame. So no
// frame is late, and nothing waits for the end of the scrolling.

const most = 8; // ms of one slice: half of a frame
const scrolling = 200; // ms for which the person is thought to scroll on
const patience = 32; // ms before an idle browser is not waited for any more
const idle = (f) => (globalThis.requestIdleCallback ? requestIdleCallback(f, { timeout: patience }) : setTimeout(f, patience / 2));

const steps = [];
let asked = false; // for a slice
let until = 0; // when the scrolling is over

// later has a step done soon. A step takes little time, and returns true when there is another one; steps take turns.
export function later(step) {
  steps.push(step);
  ask();
}

// hurry says that the person scrolls.
export function hurry() {
  until = performance.now() + scrolling;
}

function ask() {
  if (asked) return;
  asked = true;
  if (performance.now() < until && !document.hidden) requestAnimationFrame(slice); // a page that is hidden has no frames
  else idle(slice);
}

function slice() {
  asked = false;
  const more = inTime();
  do {
    const step = steps.shift();
    try {
      if (step()) steps.push(step);
    } catch (err) {
      setTimeout(() => { // to the console: the others are done all the same
        throw err;
      });
    }
  } while (steps.length && more());
  if (steps.length) ask();
}

// inTime says, until a slice's time is over, that more may be done at once.
export function inTime() {
  const end = performance.now() + most;
  return () => performance.now() < end;
}
