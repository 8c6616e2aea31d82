// Zooms a plot by two fingers, and moves its cursor by one. uPlot knows the mouse only.

// stretched returns the stretch that has the times that were under two fingers, at a and b, under them now. All positions are
// pixels from the left of a plot that is so wide.
export function stretched([a, b], [nowA, nowB], width, { since, until }) {
  const span = until - since;
  const at = (x) => since + (x / width) * span;
  const apart = nowB - nowA;
  if (Math.abs(apart) < 1 || Math.sign(apart) !== Math.sign(b - a)) return null; // the fingers have met or passed
  const next = ((at(b) - at(a)) / apart) * width;
  const begin = at(a) - (nowA / width) * next;
  return { since: begin, until: begin + next };
}

// followTouches calls back for the touches of an element: preview(stretch) while two fingers move, done(stretch) at the end, and
// point(x) while one moves.
export function followTouches(element, { view, preview, done, point, signal }) {
  const fingers = new Map(); // pointer id → x
  let began = null; // {xs, view} of a pinch
  let last = null;
  const x = (event) => event.clientX - element.getBoundingClientRect().left;
  const touch = (listener) => (event) => event.pointerType === "touch" && listener(event);
  const on = (kind, listener) => element.addEventListener(kind, touch(listener), { signal });

  on("pointerdown", (event) => {
    fingers.set(event.pointerId, x(event));
    if (fingers.size === 2) began = { ids: [...fingers.keys()], xs: [...fingers.values()], view: view() };
  });
  on("pointermove", (event) => {
    if (!fingers.has(event.pointerId)) return;
    fingers.set(event.pointerId, x(event));
    if (!began) return point(x(event));
    const next = stretched(began.xs, began.ids.map((id) => fingers.get(id)), element.clientWidth, began.view);
    if (next) preview((last = next));
  });
  const end = (event) => {
    fingers.delete(event.pointerId);
    if (!began) return;
    const stretch = last;
    began = last = null;
    fingers.clear();
    if (stretch) done(stretch);
  };
  on("pointerup", end);
  on("pointercancel", end);
}
