// The workspace's panes: splitters for pointer and keyboard; panes that hide, maximize, or on a phone show one at a time. The layout
// is stored per user and per width of the window on the server, which renders the next page with it.
import { drag } from "./drag.js";
import { fitsBeside, hide, paneBefore, ratio, resize, restore, reveal, serialize, visible } from "./layout.js";
import { preference, setPreference } from "./preferences.js";

const phone = matchMedia("(max-width: 43.74rem)"); // as in panes.css
const widths = { wide: matchMedia("(min-width: 100rem)"), medium: matchMedia("(min-width: 70rem)") }; // as in panes.css
const least = { beside: 240, below: 120 }; // px; the minimum size of a pane
const leastSide = 160; // px
const mostSide = 600; // px
const rest = 320; // px that the sidebar leaves to the others
const step = 0.02; // of both panes, for one arrow key press
const leap = 0.1; // with Shift
const sideStep = 16; // px
const main = "terminal"; // what a phone shows first

// What gets the focus in a pane: the first visible match.
const places = [".cm-content", ".xterm-helper-textarea", "[data-focus]", ".pane button, .pane a[href]"];

const root = document.querySelector(".panes");
const slots = new Map([...(root?.querySelectorAll("[data-pane]") ?? [])].map((slot) => [slot.dataset.pane, slot]));
const edge = root?.querySelector(".side-splitter");
let panes = [...slots].map(([id, slot]) => ({ id, usual: Number(slot.dataset.share), side: "side" in slot.dataset, empty: "empty" in slot.dataset, hides: "hides" in slot.dataset, share: 0, hidden: false }));
let filling = [...slots].find(([, slot]) => slot.dataset.max !== undefined)?.[0] ?? "";
let front = [...slots].find(([, slot]) => slot.dataset.front !== undefined)?.[0] ?? "";
let width = ""; // of the window: a key of widths, or "narrow"
let flow = ""; // "beside" or "below" when the user has chosen
let side = 0; // px; 0 for the default

// load reads the layout that was stored for the width of the window.
function load() {
  const now = Object.keys(widths).find((name) => widths[name].matches) ?? "narrow";
  if (now === width) return draw();
  width = now;
  const kept = preference("shapes", {})[width] ?? {};
  panes = restore(panes, kept.panes);
  flow = kept.flow ?? "";
  side = kept.side ?? 0;
  if (Object.keys(preference("shapes", {})).length) setPreference("last", width);
  draw();
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

// leave hides a pane. Focus in it moves to the pane that is left.
function leave(id) {
  const had = slots.get(id).contains(document.activeElement);
  panes = hide(panes, id);
  apply();
  if (had && !slots.get(id).checkVisibility()) enter(visible(panes).findLast((p) => !p.side).id);
}

function seen(id) {
  return slots.get(id).checkVisibility();
}

function fill(id) {
  if (panes.find((p) => p.id === id)?.side) return;
  filling = filling === id ? "" : id;
  apply();
}

function press(id) {
  if (phone.matches || !seen(id)) return show(id);
  filling = "";
  leave(id);
}

// toggleFlow puts the panes beside or below each other.
function toggleFlow() {
  flow = flows() === "beside" ? "below" : "beside";
  apply();
}

// flows says how the panes are, whether the user has chosen it or not.
function flows() {
  return flow || (fitsBeside(panes, width) ? "beside" : "below");
}

// apply draws the layout and stores it.
function apply() {
  draw();
  setPreference("shapes", { ...preference("shapes", {}), [width]: { panes: serialize(panes), flow, side } });
  setPreference("last", width);
  setPreference("whole", filling);
  setPreference("front", front);
}

function draw() {
  const all = visible(panes);
  const first = all.find((p) => !p.side)?.id;
  const fore = panes.some((p) => p.id === front && !p.empty) ? front : main;
  root.className = ["panes", flow, root.classList.contains("resizing") && "resizing"].filter(Boolean).join(" ");
  if (side) root.style.setProperty("--side", `${side}px`);
  else root.style.removeProperty("--side");
  for (const p of panes) {
    const slot = slots.get(p.id);
    const here = phone.matches ? p.id === fore : filling ? p.id === filling : all.includes(p);
    if (!p.side) slot.style.flexGrow = p.share;
    slot.toggleAttribute("data-empty", p.empty);
    slot.toggleAttribute("data-off", p.hidden);
    slot.toggleAttribute("data-first", p.id === first);
    slot.toggleAttribute("data-max", p.id === filling && !p.empty);
    slot.toggleAttribute("data-front", p.id === fore);
    slot.querySelector("[data-pane-max]")?.setAttribute("aria-pressed", String(p.id === filling));
    const toggle = document.querySelector(`[data-pane-toggle="${p.id}"]`);
    toggle?.setAttribute("aria-pressed", String(here));
    toggle?.toggleAttribute("data-empty", p.empty);
    drawSplitter(p.id, slot.querySelector(":scope > .splitter"));
  }
  drawEdge();
}

function drawSplitter(id, splitter) {
  const left = splitter && paneBefore(panes, id);
  if (!left) return;
  splitter.setAttribute("aria-orientation", flows() === "beside" ? "vertical" : "horizontal");
  setRange(splitter, 0, 100, ratio(panes, id) * 100);
  splitter.setAttribute("aria-label", `Size of ${slots.get(left.id).dataset.title}`);
  splitter.setAttribute("aria-controls", `slot-${left.id}`);
}

function drawEdge() {
  const slot = slots.get(panes.find((p) => p.side)?.id);
  if (edge && slot?.checkVisibility()) setRange(edge, leastSide, mostSide, slot.offsetWidth);
}

function setRange(splitter, from, to, now) {
  splitter.setAttribute("aria-valuemin", String(from));
  splitter.setAttribute("aria-valuemax", String(to));
  splitter.setAttribute("aria-valuenow", String(Math.round(now)));
  splitter.tabIndex = 0; // without this script it moves nothing
}

// room returns the position and size of both panes beside a splitter, in pixels.
function room(id) {
  const left = slots.get(paneBefore(panes, id).id).getBoundingClientRect();
  const right = slots.get(id).getBoundingClientRect();
  return flows() === "beside" ? { from: left.left, size: right.right - left.left } : { from: left.top, size: right.bottom - left.top };
}

function move(id, part) {
  panes = resize(panes, id, part, Math.min(least[flows()] / room(id).size, 0.5));
}

function moveSide(px) {
  side = Math.round(Math.max(leastSide, Math.min(px, mostSide, root.clientWidth - rest)));
}

function resizeByPointer(event) {
  const splitter = event.target.closest?.(".splitter");
  if (!splitter || event.button) return;
  const box = splitter.getBoundingClientRect();
  const across = splitter === edge || flows() === "beside";
  const off = across ? event.clientX - box.left - box.width / 2 : event.clientY - box.top - box.height / 2;
  const id = splitter.closest("[data-pane]")?.dataset.pane;
  const both = id && room(id);
  const left = root.getBoundingClientRect().left;
  root.classList.add("resizing");
  const follow = (e) => {
    const at = (across ? e.clientX : e.clientY) - off;
    if (id) move(id, (at - both.from) / both.size);
    else moveSide(at - left);
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
  const way = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
  if (event.key === "Enter") return stopped(event, () => putBack(splitter));
  if (splitter === edge) return way && stopped(event, () => moveSide(slots.get(panes.find((p) => p.side).id).offsetWidth + way * sideStep));
  const id = splitter.closest("[data-pane]").dataset.pane;
  const at = ratio(panes, id);
  const to = way ? at + way * (event.shiftKey ? leap : step) : { Home: 0, End: 1 }[event.key];
  if (to !== undefined) stopped(event, () => move(id, to));
}

function stopped(event, act) {
  event.preventDefault();
  act();
  apply();
}

// putBack restores the default size of what a splitter moves.
function putBack(splitter) {
  if (splitter === edge) side = 0;
  else panes = panes.map((p) => ({ ...p, share: p.usual }));
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

// toggleByKey hides a pane that has the focus, or, as the files, needs none; otherwise it goes to the pane.
function toggleByKey(id) {
  const slot = slots.get(id);
  if (seen(id) && (slot.contains(document.activeElement) || "side" in slot.dataset)) press(id);
  else enter(id);
}

// occupy notes whether something is open in a pane.
function occupy(id, open) {
  panes = panes.map((p) => (p.id === id ? { ...p, empty: !open } : p));
  if (!open && filling === id) filling = "";
  draw();
}

// fit keeps the page above an on-screen keyboard in browsers that do not resize the page for it.
function fit() {
  const { height, offsetTop } = visualViewport;
  document.body.style.setProperty("--seen", `${Math.round(height)}px`);
  if (offsetTop > 0) scrollTo(0, 0);
}

function clicked(event) {
  const button = event.target.closest?.("[data-pane-toggle], [data-pane-max], [data-pane-hide], [data-pane-flow]");
  if (!button) return;
  const had = button.contains(document.activeElement);
  const id = button.dataset.paneToggle ?? button.closest("[data-pane]").dataset.pane;
  if ("paneFlow" in button.dataset) toggleFlow();
  else if ("paneMax" in button.dataset) fill(id);
  else press(id);
  if (had && !button.checkVisibility()) document.querySelector(`[data-pane-toggle="${id}"]`)?.focus();
}

function listen() {
  globalThis.visualViewport?.addEventListener("resize", fit);
  root.addEventListener("pointerdown", resizeByPointer);
  root.addEventListener("keydown", nudge);
  root.addEventListener("dblclick", (event) => {
    const splitter = event.target.closest(".splitter");
    if (splitter) stopped(event, () => putBack(splitter));
  });
  document.addEventListener("keydown", shortcut, true);
  document.addEventListener("click", clicked);
  document.addEventListener("sandboxd:toggle", (event) => toggleByKey(event.detail));
  document.addEventListener("sandboxd:editing", (event) => occupy("editor", event.detail));
  document.addEventListener("sandboxd:open", () => show("editor"));
  document.addEventListener("sandboxd:editor", () => show("editor"));
  document.addEventListener("sandboxd:show", (event) => show(event.detail));
  document.addEventListener("sandboxd:tree", () => phone.matches && show("files"));
  document.addEventListener("sandboxd:reveal", () => show("files"));
  for (const query of [phone, ...Object.values(widths)]) query.addEventListener("change", load);
}

if (slots.size) {
  listen();
  load();
} else if (root) {
  globalThis.visualViewport?.addEventListener("resize", fit);
}
