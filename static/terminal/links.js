// Links in a terminal come from a sandbox: they open only when the person has seen where they lead, or holds the key that
// says so, and what they open knows nothing of this page.

// safeLink gives the address when it may be opened at all, or null.
export function safeLink(text) {
  try {
    const url = new URL(text);
    return (url.protocol === "http:" || url.protocol === "https:") && !url.username && !url.password ? url.href : null;
  } catch {
    return null;
  }
}

// follow opens a link whose whole address stands on the screen: with Ctrl or Cmd held, or, where nothing hovers, asked.
export function follow(event, text) {
  const url = safeLink(text);
  if (!url) return;
  if (hasModifier(event) || (noHover() && confirm(question(url)))) open(url);
}

const hasModifier = (event) => event.ctrlKey || event.metaKey;
const noHover = () => matchMedia("(hover: none)").matches;

// opens says whether a click opens a link: with Ctrl or Cmd held, or on a screen without hovering.
export const opens = (event) => hasModifier(event) || noHover();

// howTo says in a tooltip how what the mouse is over is opened.
export const howTo = /Mac/.test(globalThis.navigator?.platform ?? "") ? "⌘ click to open" : "Ctrl+click to open";

// hidden handles links whose address the program has put behind other text (OSC 8), in every screen: always asked. Without
// it xterm would follow them by itself.
export const hidden = { activate: followHidden };

function followHidden(event, text) {
  const url = safeLink(text);
  if (url && opens(event) && confirm(question(url))) open(url);
}

function question(url) {
  return `Open this address from the sandbox?\n\n${url.length > 300 ? `${url.slice(0, 300)}…` : url}`;
}

function open(url) {
  window.open(url, "_blank", "noopener,noreferrer");
}
