// Opens the command palette by key or button, and toggles panes by key. The palette itself is loaded when it is first opened.
import { h, icon } from "./dom.js";
import { paletteKeys, wanted } from "./shortcuts.js";
import { toast } from "./toast.js";

const isMac = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? "");

let Palette = null; // once it is loaded
let loading = false; // a dialog takes what is typed until the palette is there

export async function openPalette(mode) {
  if (loading) return;
  const from = document.activeElement;
  if (Palette) return Palette.open(mode, { from });
  const field = h("input", { class: "palette-field", type: "text", "aria-label": "Search and commands", placeholder: "Loading…", autocomplete: "off", spellcheck: "false" });
  const early = h("dialog", { class: "palette" }, h("div", { class: "palette-head" }, icon("search"), field));
  const late = setTimeout(() => {
    document.body.append(early);
    early.showModal();
  });
  loading = true;
  try {
    ({ Palette } = await import("./palette.js"));
    const closed = early.isConnected && !early.open;
    early.remove();
    if (closed) from.focus();
    else Palette.open(mode, { typed: field.value, from });
  } catch {
    early.remove();
    toast("The search could not be loaded. Look at your connection, then try again.", { bad: true });
  } finally {
    clearTimeout(late);
    loading = false;
  }
}

const inTerminal = (element) => Boolean(element?.closest?.(".terminal-stage"));

// nameKeys has the buttons name the keys for what has the focus.
function nameKeys() {
  const text = paletteKeys({ mac: isMac, terminal: inTerminal(document.activeElement) });
  for (const key of document.querySelectorAll("[data-palette] .key")) if (key.textContent !== text) key.textContent = text;
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
        mac: isMac, terminal: inTerminal(event.target), workspace: Boolean(document.querySelector("[data-pane]")), signedIn: Boolean(document.querySelector("[data-palette]")),
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
  for (const kind of ["focusin", "focusout"]) document.addEventListener(kind, nameKeys);
  nameKeys();
  if (isMac) for (const button of document.querySelectorAll(".palette-button")) button.title = "Search and commands (⌘K)";
}
