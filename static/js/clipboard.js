import { h } from "./dom.js";

// copy puts text on the clipboard, and says whether that worked. Without HTTPS, except on localhost, browsers have no clipboard API
// for scripts; and some want a click first.
export async function copy(text) {
  if (!text) return false;
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelection(text);
  }
}

function copyBySelection(text) {
  const before = document.activeElement;
  const area = h("textarea", { "aria-hidden": "true" });
  area.value = text;
  Object.assign(area.style, { position: "fixed", left: "-100vw", top: "0", opacity: "0" });
  (document.querySelector("dialog:modal") ?? document.body).append(area); // a modal dialog makes the rest inert
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  before?.focus?.({ preventScroll: true });
  return done;
}

// readClipboard returns the text on the clipboard. It fails without HTTPS, except on localhost, and where the user does not allow it.
export async function readClipboard() {
  return navigator.clipboard.readText();
}
