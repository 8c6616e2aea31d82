// Copying. A sandbox may put text on the clipboard (OSC 52, which tmux uses), but never read it.

// copy puts text on the clipboard, also where the page is not served securely and the browser has no clipboard for
// scripts.
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
  const area = document.createElement("textarea");
  area.value = text;
  area.setAttribute("aria-hidden", "true");
  area.className = "terminal-copy";
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
  before?.focus?.({ preventScroll: true });
}

// writeOnly is what the clipboard addon may use.
export const writeOnly = {
  readText: () => "",
  writeText: (selection, text) => (selection === "c" || selection === "" ? copy(text) : undefined),
};
