// The list of sandboxes: going through it by keyboard, and picking several to act on.
import { announce } from "./announce.js";
import { isTyping } from "./keyboard.js";
import { end } from "./many_done.js";
import { Picks, step } from "./picks.js";
import { shownFor } from "./toast.js";

const picks = new Picks();
const list = () => document.getElementById("list");
const boxes = () => [...document.querySelectorAll(".rows .tick")];
const all = () => document.querySelector("[data-pick-all]");

// show brings the page in line with what is picked.
function show() {
  const shown = boxes();
  picks.keep(shown.map((box) => box.value));
  for (const box of shown) box.checked = picks.has(box.value);
  const head = all();
  if (head) {
    head.hidden = shown.length === 0;
    const input = head.querySelector("input");
    input.checked = picks.size > 0 && picks.size === shown.length;
    input.indeterminate = picks.size > 0 && picks.size < shown.length;
  }
  const count = document.querySelector("[data-picked]");
  if (count) count.textContent = `${picks.size} selected`;
}

function changed() {
  show();
  announce(picks.size ? `${picks.size} selected` : "Nothing selected");
}

// pick takes a tick box as the person has left it. With shift, all between it and the one before get the same.
function pick(box, on, shift) {
  picks.set(boxes().map((b) => b.value), box.value, on, shift);
  changed();
}

let shifted = false;
document.addEventListener("keydown", (event) => { shifted = event.shiftKey; }, true);
document.addEventListener("mousedown", (event) => {
  shifted = event.shiftKey; // the click that a label passes on to its box does not say
  if (shifted && event.target.closest?.(".row-pick")) event.preventDefault(); // it would select text
}, true);

document.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-many-close]")) {
    event.preventDefault();
    document.getElementById("many-done").replaceChildren();
  }
});

document.addEventListener("change", (event) => {
  const box = event.target;
  if (!box.matches?.("input.tick")) return;
  if (!box.closest("[data-pick-all]")) return pick(box, box.checked, shifted);
  for (const one of boxes()) picks.set([], one.value, box.checked, false);
  changed();
});

document.getElementById("many")?.addEventListener("reset", (event) => {
  event.preventDefault();
  picks.clear();
  changed();
  all()?.querySelector("input").focus(); // the button is gone
});

// The server says so when it has answered. The buttons are gone with the picks.
document.addEventListener("many-done", () => {
  picks.clear();
  show();
  const done = document.getElementById("many-done");
  done.focus({ preventScroll: true });
  if (!sayEnded()) leaveSoon(done);
});

// leaveSoon takes away what was told when there was time to read it. What still waits for its end stays until then.
function leaveSoon(done) {
  clearTimeout(leaving);
  if (done.querySelector(".tone-good:not([data-waits])")) leaving = setTimeout(leave, shownFor(done.textContent.trim(), done.querySelector("form")));
}

// sayEnded tells that what was told of has ended, if it just has.
function sayEnded() {
  const done = document.getElementById("many-done");
  if (!done || !end(done, (id) => document.getElementById(id))) return false;
  leaveSoon(done);
  return true;
}

// leave takes away what was told, unless the person is at it. What went wrong stays.
let leaving = 0;
function leave() {
  const done = document.getElementById("many-done");
  if (done.querySelector(":hover, :focus")) leaving = setTimeout(leave, 1000);
  else done.replaceChildren();
}

// askToDelete opens the question about those that are picked, or about a row.
function askToDelete(row) {
  if (!picks.size && row) pick(row.querySelector(".tick"), true, false);
  if (picks.size) document.querySelector('#many [formaction="/many/delete"]').click();
}

// Rows come and go: what is picked stays, as long as it shows.
for (const kind of ["htmx:afterSwap", "sandboxd:parts"]) {
  document.addEventListener(kind, show);
  document.addEventListener(kind, sayEnded);
}
addEventListener("pageshow", show);

// go moves the focus by rows.
function go(key) {
  const links = [...document.querySelectorAll(".row-title")];
  const row = document.activeElement.closest?.(".row");
  const next = step(key, row ? links.findIndex((link) => row.contains(link)) : -1, links.length);
  if (next < 0) return;
  links[next].focus();
  links[next].closest(".row").scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || !list() || document.querySelector("dialog[open], details.menu[open]")) return;
  const at = event.target;
  const box = at.matches?.(".rows .tick");
  if (!box && isTyping(at)) return;
  const inList = at === document.body || at.closest?.(".rows");
  if (event.key === "Escape" && picks.size) {
    picks.clear();
    return changed();
  }
  const row = at.closest?.(".row");
  if (event.key === "x" && row) {
    const input = row.querySelector(".tick");
    pick(input, !input.checked, false);
  } else if (event.key === "Delete" && (row || picks.size)) askToDelete(row);
  else if (["j", "k"].includes(event.key) || (inList && ["ArrowDown", "ArrowUp"].includes(event.key))) go(event.key);
  else return;
  event.preventDefault();
});

const none = document.querySelector("[data-pick-none]");
if (none) none.hidden = false;
show();
