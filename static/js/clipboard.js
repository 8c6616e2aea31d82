import { h } from "./dom.js";

// copy puts text on the clipboard. Without HTTPS, except on localhost, browsers have no clipboard API for scripts.
export async function copy(text) {
  if (!text) return;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyBySelection(text);
  }
}

function copyBySelection(text) {
  const before = document.activeElement;
  const area = h("textarea", { "aria-hidden": "true" });
  area.value = text;
  Object.assign(area.style, { position: "fixed", left: "-100vw", top: "0", opacity: "0" });
  (document.querySelector("dialog:modal") ?? document.body).append(area); // a modal dialog makes the rest inert
  area.select();
  document.execCommand("copy");
  area.remove();
  before?.focus?.({ preventScroll: true });
}
