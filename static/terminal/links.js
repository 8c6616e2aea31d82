// Links in a terminal come from a sandbox, so they are opened only with a modifier held or after a confirmation that shows
// the address, and without access to this page.

import { ask } from "./ask.js";

// safeLink returns the address if it is safe to open, or null.
export function safeLink(text) {
  try {
    const url = new URL(text);
    return (url.protocol === "http:" || url.protocol === "https:") && !url.username && !url.password ? url.href : null;
  } catch {
    return null;
  }
}

// follow opens a link whose address is fully visible: with Ctrl or Cmd held, else after a confirmation on touch screens.
export async function follow(event, text) {
  const url = safeLink(text);
  if (!url) return;
  if (hasModifier(event) || (noHover() && (await ask(question(url))))) open(url);
}

const hasModifier = (event) => event.ctrlKey || event.metaKey;
const noHover = () => matchMedia("(hover: none)").matches;

// opens says whether a click opens a link: Ctrl or Cmd is held, or the screen has no hovering.
export const opens = (event) => hasModifier(event) || noHover();

export const howTo = /Mac/.test(globalThis.navigator?.platform ?? "") ? "⌘ click to open" : "Ctrl+click to open";

// hidden handles links whose address is not their text (OSC 8). It always asks; without it xterm.js would open them by
// itself.
export const hidden = { activate: followHidden };

async function followHidden(event, text) {
  const url = safeLink(text);
  if (url && opens(event) && (await ask(question(url)))) open(url);
}

function question(url) {
  return { title: "Open this address from the sandbox?", detail: url.length > 300 ? `${url.slice(0, 300)}…` : url, act: "Open" };
}

function open(url) {
  window.open(url, "_blank", "noopener,noreferrer");
}
