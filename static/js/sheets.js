// Sheets: pages that open as dialogs. Without scripts, or in a new tab, a data-sheet link opens the page itself.
import htmx from "./htmx.js";

const sheet = () => document.getElementById("sheet");

export async function openSheet(url, size) {
  const dialog = sheet();
  if (!dialog) return location.assign(url);
  dialog.classList.toggle("wide", size === "wide");
  await htmx.ajax("GET", url, { target: dialog, swap: "innerHTML", source: dialog });
}

export function closeSheet() {
  const dialog = sheet();
  if (!dialog?.open) return;
  dialog.close();
}

globalThis.document?.addEventListener("click", (event) => {
  if (event.target.closest?.("[data-sheet-close]") && sheet()?.open) {
    event.preventDefault();
    return closeSheet();
  }
  if (event.target.matches?.("dialog")) return event.target.close(); // the backdrop
  const link = event.target.closest?.("a[data-sheet]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  event.preventDefault();
  openSheet(link.href, link.dataset.sheet);
});

globalThis.document?.addEventListener("htmx:afterSwap", (event) => {
  const dialog = sheet();
  if (event.detail.target !== dialog || !dialog.querySelector("[data-sheet-part]")) return;
  if (!dialog.open) dialog.showModal();
  const first = dialog.querySelector("[autofocus]");
  first?.focus();
  first?.removeAttribute("autofocus"); // or htmx would focus it again a moment later
});

// The server triggers this when a sheet has done its work and the page behind it should show.
globalThis.document?.addEventListener("sheet-done", closeSheet);
