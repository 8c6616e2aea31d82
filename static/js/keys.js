// Keyboard shortcuts. They never fire while somebody types, nor inside a terminal, nor with a modifier held.
import { openSheet } from "./sheets.js";

const patience = 900; // ms between the two keys of "g s"
let goUntil = 0;

export function isTyping(target) {
  return Boolean(target?.closest?.("input, textarea, select, [contenteditable], sandbox-terminals"));
}

const go = { s: "/", t: "/templates" };

// press gives the action of a key, or nothing. It holds no DOM, so that it can be tested.
export function press(key, now) {
  if (now < goUntil && go[key]) {
    goUntil = 0;
    return { go: go[key] };
  }
  goUntil = key === "g" ? now + patience : 0;
  switch (key) {
    case "c":
      return { sheet: "/new" };
    case "/":
      return { focus: "filter" };
    case "?":
      return { dialog: "help" };
  }
  return null;
}

function perform(action) {
  if (action.go) location.assign(action.go);
  if (action.sheet) openSheet(action.sheet, "wide");
  if (action.dialog) document.getElementById(action.dialog)?.showModal();
  if (action.focus) {
    const field = document.getElementById(action.focus);
    if (!field) return location.assign("/");
    field.focus();
    field.select();
  }
}

globalThis.document?.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]") || !document.querySelector(".nav, .workspace")) return;
  const action = press(event.key, event.timeStamp);
  if (!action) return;
  event.preventDefault();
  perform(action);
});

globalThis.document?.addEventListener("click", (event) => {
  if (!event.target.closest?.("[data-help]")) return;
  event.preventDefault();
  document.getElementById("help").showModal();
});
