// The workspace's panes: splitters for pointer and keyboard; panes that hide, maximize, or on a phone show one at a time.
// The layout is stored per user on the server, which renders the next page with it.
import { drag } from "./drag.js";
import { paneBefore, ratio, resize, reveal, serialize, toggle, visible } from "./layout.js";
import { setPreference } from "./preferences.js";

const phone = matchMedia("(max-width: 43.74rem)"); // as in panes.css
const least = 240; // px; the minimum width of a pane
const step = 0.02; // of both panes, for one arrow key press
const leap = 0.1; // with Shift

// What gets the focus in a pane: the first visible match.
const places = [".cm-content", ".xterm-helper-textarea", "[data-focus]", ".pane button, .pane a[href]"];

const root = document.querySelector(".panes");
const slots = new Map([...(root?.querySelectorAll(":scope > [data-pane]") ?? [])].map((slot) => [slot.dataset.pane, slot]));
let panes = [...slots].map(([id, slot]) => ({ id, share: grown(slot), hidden: slot.dataset.off !== undefined }));
let filling = [...slots].find(([, slot]) => slot.dataset.max !== undefined)?.[0] ?? "";
let front = [...slots].find(([, slot]) => slot.dataset.front !== undefined)?.[0] ?? "";

function grown(slot) {
  return Number(getComputedStyle(slot).flexGrow) || 1;
}

// show makes a pane visible and returns its slot.
export function show(id) {
  if (!slots.has(id)) return null;
  panes = reveal(panes, id);
  if (filling && filling !== id) filling = "";
  front = id;
  apply();
  return slots.get(id);
}

// enter shows a pane and focuses it.
function enter(id) {
  const slot = show(id);
  for (const place of places) {
    const within = [...(slot?.querySelectorAll(place) ?? [])].find((e) => e.checkVisibility());
    if (within) return within.focus();
  }
}

function fill(id) {
  filling = filling === id ? "" : id;
  apply();
}

function press(id) {
  if (phone.matches) return show(id);
  if (filling && filling !== id) return show(id);
  filling = "";
  panes = toggle(panes, id);
  apply();
}

// apply draws the layout and stores it.
function apply() {
  draw();
  setPreference("panes", serialize(panes));
  setPreference("whole", filling);
  setPreference("front", front);
}

function draw() {
  const first = visible(panes)[0]?.id;
  for (const p of panes) {
    const slot = slots.get(p.id);
    slot.style.flexGrow = p.share;
    slot.toggleAttribute("data-off", p.hidden);
    slot.toggleAttribute("data-first", p.id === first);
    slot.toggleAttribute("data-max", p.id === filling);
    slot.toggleAttribute("data-front", p.id === front);
    slot.querySelector("[data-pane-max]")?.setAttribute("aria-pressed", String(p.id === filling));
    const here = phone.matches ? p.id === front : filling ? p.id === filling : !p.hidden;
    document.querySelector(`[data-pane-toggle="${p.id}"]`)?.setAttribute("aria-pressed", String(here));
    drawSplitter(p.id, slot.querySelector(":scope > .splitter"));
  }
}

function drawSplitter(id, splitter) {
  const left = splitter && paneBefore(panes, id);
  if (!left) return;
  splitter.setAttribute("aria-valuemin", "0");
  splitter.setAttribute("aria-valuemax", "100");
  splitter.setAttribute("aria-valuenow", String(Math.round(ratio(panes, id) * 100)));
  splitter.setAttribute("aria-label", `Width of ${slots.get(left.id).dataset.title}`);
  splitter.setAttribute("aria-controls", `slot-${left.id}`);
}

// room returns the position and width of both panes beside a splitter, in pixels.
function room(id) {
  const left = slots.get(paneBefore(panes, id).id).getBoundingClientRect();
  const right = slots.get(id).getBoundingClientRect();
  return { left: left.left, width: right.right - left.left };
}

function move(id, part) {
  panes = resize(panes, id, part, Math.min(least / room(id).width, 0.5));
}

function resizeByPointer(event) {
  const splitter = event.target.closest?.(".splitter");
  if (!splitter || event.button) return;
  const id = splitter.closest("[data-pane]").dataset.pane;
  const { left, width } = room(id);
  const off = event.clientX - splitter.getBoundingClientRect().left - splitter.offsetWidth / 2;
  root.classList.add("resizing");
  const follow = (e) => {
    move(id, (e.clientX - off - left) / width);
    draw();
  };
  drag(splitter, event, follow, () => {
    root.classList.remove("resizing");
    apply();
  });
}

function nudge(event) {
  const splitter = event.target.closest?.(".splitter");
  if (!splitter || event.ctrlKey || event.altKey || event.metaKey) return;
  const id = splitter.closest("[data-pane]").dataset.pane;
  const by = event.shiftKey ? leap : step;
  const at = ratio(panes, id);
  const to = { ArrowLeft: at - by, ArrowRight: at + by, Home: 0, End: 1 }[event.key];
  if (event.key === "Enter") putBack();
  else if (to === undefined) return;
  else move(id, to);
  event.preventDefault();
  apply();
}

// putBack restores the default widths.
function putBack() {
  panes = panes.map((p) => ({ ...p, share: Number(slots.get(p.id).dataset.share) || p.share }));
}

// Ctrl+Shift+1, 2 … goes to a pane; Ctrl+Shift+Enter maximizes the focused one.
function shortcut(event) {
  if (!event.ctrlKey || !event.shiftKey || event.altKey || event.metaKey) return;
  const digit = /^Digit([1-9])$/.exec(event.code)?.[1];
  const id = digit ? panes[digit - 1]?.id : event.key === "Enter" ? event.target.closest?.("[data-pane]")?.dataset.pane : null;
  if (!id) return;
  event.preventDefault();
  event.stopPropagation();
  if (digit) enter(id);
  else if (!phone.matches) fill(id);
}

// fit keeps the page above an on-screen keyboard in browsers that do not resize the page for it.
function fit() {
  const { height, offsetTop } = visualViewport;
  document.body.style.setProperty("--seen", `${Math.round(height)}px`);
  if (offsetTop > 0) scrollTo(0, 0);
}

if (root) {
  globalThis.visualViewport?.addEventListener("resize", fit);
  root.addEventListener("pointerdown", resizeByPointer);
  root.addEventListener("keydown", nudge);
  root.addEventListener("dblclick", (event) => {
    if (!event.target.closest(".splitter")) return;
    putBack();
    apply();
  });
  document.addEventListener("keydown", shortcut, true);
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-pane-toggle], [data-pane-max], [data-pane-hide]");
    if (!button) return;
    const id = button.dataset.paneToggle ?? button.closest("[data-pane]").dataset.pane;
    if (button.dataset.paneMax !== undefined) fill(id);
    else press(id);
    if (!button.checkVisibility()) document.querySelector(`[data-pane-toggle="${id}"]`)?.focus();
  });
  document.addEventListener("sandboxd:open", () => show("files"));
  document.addEventListener("sandboxd:reveal", () => show("files"));
  phone.addEventListener("change", draw);
  draw();
}
