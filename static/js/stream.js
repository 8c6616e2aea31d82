// Says when the page's stream is cut for longer than a moment, and keeps what the person was at when parts of the page
// are replaced: the focus, an open menu.
import htmx from "./htmx.js";

const patience = 3000; // ms; shorter cuts are not worth a word
const focusable = "a[href], button, input, select, textarea, summary";
let timer = 0;

function show(cut) {
  const note = document.getElementById("offline");
  if (note) note.hidden = !cut;
}

htmx.on("htmx:sseError", () => {
  timer ||= setTimeout(() => show(true), patience);
});

htmx.on("htmx:sseOpen", () => {
  clearTimeout(timer);
  timer = 0;
  show(false);
});

htmx.on("htmx:partialBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  if (target.id === "rows") fragment.firstElementChild?.classList.add("fresh");
  if (target.querySelector("details.menu[open]")) fragment.querySelector("details.menu")?.setAttribute("open", "");
  for (const input of target.querySelectorAll("input[id]")) { // what somebody is entering stays
    const next = input.value === input.defaultValue ? null : fragment.querySelector(`#${CSS.escape(input.id)}`);
    if (next) next.value = input.value;
  }
  if (!target.id || !target.contains(document.activeElement)) return;
  const at = [...target.querySelectorAll(focusable)].indexOf(document.activeElement);
  queueMicrotask(() => {
    const present = document.getElementById(target.id)?.querySelectorAll(focusable);
    present?.[Math.min(at, present.length - 1)]?.focus({ preventScroll: true });
  });
});
