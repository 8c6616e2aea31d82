// Which of these panes had the focus last, for the next load of the page in this tab.
const panes = ["editor", "terminal", "chat"];
const store = globalThis.sessionStorage; // tests have none
const key = `focus ${globalThis.location?.pathname}`;

export function lastPane() {
  return store?.getItem(key) ?? "terminal";
}

globalThis.document?.addEventListener?.("focusin", (event) => {
  const pane = event.target.closest?.("[data-pane]")?.dataset.pane;
  if (panes.includes(pane)) store?.setItem(key, pane);
});
globalThis.document?.addEventListener?.("sandboxd:editing", (event) => !event.detail && store?.removeItem(key)); // the last file is closed
