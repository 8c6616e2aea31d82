// Opens the command palette by key or button, and toggles panes by key. The palette itself is loaded when it is first opened.
import { wanted } from "./shortcuts.js";

const isMac = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? "");

export async function openPalette(mode) {
  const { Palette } = await import("./palette.js");
  Palette.open(mode);
}

function perform(action, event) {
  const open = document.querySelector("dialog[open]");
  if (open && (open.id !== "palette" || !action.palette)) return;
  event.preventDefault();
  event.stopPropagation();
  if (action.palette) openPalette(action.palette);
  else document.dispatchEvent(new CustomEvent("sandboxd:toggle", { detail: action.toggle }));
}

if (globalThis.document) {
  document.addEventListener(
    "keydown",
    (event) => {
      const action = wanted(event, {
        mac: isMac, terminal: Boolean(event.target.closest?.(".terminal-stage")), workspace: Boolean(document.querySelector("[data-pane]")), signedIn: Boolean(document.querySelector("[data-palette]")),
      });
      if (action) perform(action, event);
    },
    true, // before a terminal or an editor
  );
  document.addEventListener("click", (event) => {
    const button = event.target.closest?.("[data-palette]");
    if (button) openPalette(button.dataset.palette);
  });
  document.addEventListener("sandboxd:palette", (event) => openPalette(event.detail));
  if (isMac) for (const key of document.querySelectorAll("[data-palette] .key")) key.textContent = "⌘K";
}
