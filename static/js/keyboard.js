// Keyboard shortcuts. They are off in text fields, in terminals and while a modifier is held.
import { shortcut } from "./shortcuts.js";
import { openSheet } from "./sheets.js";

export function isTyping(target) {
  return Boolean(target?.closest?.("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable], sandbox-terminals"));
}

function perform(action) {
  if (action.go) location.assign(action.go);
  if (action.sheet) openSheet(action.sheet, "wide");
  if (action.dialog) document.getElementById(action.dialog)?.showModal();
  if (action.focus) {
    const field = document.getElementById(action.focus);
    if (!field) return location.assign(`/#${action.focus}`);
    enter(field);
  }
}

function enter(field) {
  field.focus();
  field.select();
}

// Focuses the filter when its shortcut was pressed on another page.
function arrive() {
  const field = location.hash === "#filter" && document.getElementById("filter");
  if (!field) return;
  history.replaceState(history.state, "", location.pathname + location.search);
  enter(field);
}

if (globalThis.document) arrive();

globalThis.document?.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || isTyping(event.target)) return;
  if (document.querySelector("dialog[open]") || !document.querySelector(".nav, .workspace")) return;
  const action = shortcut(event.key, event.timeStamp, Boolean(document.querySelector(".workspace")));
  if (!action) return;
  event.preventDefault();
  perform(action);
});

globalThis.document?.addEventListener("click", (event) => {
  if (!event.target.closest?.("[data-help]")) return;
  event.preventDefault();
  document.getElementById("help").showModal();
});
