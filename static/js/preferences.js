// What the server keeps of how a person works in the workspace: a small object, written as a whole a moment after it has
// changed. The page brings it (data-preferences of <main>), so that nothing jumps when it loads.
const pause = 400; // ms after the last change
const place = globalThis.document?.querySelector("[data-preferences]");
const kept = read(place?.dataset.preferences);
let timer = 0;

function read(text) {
  try {
    return JSON.parse(text || "{}");
  } catch {
    return {};
  }
}

// recall gives what is kept under a name, or otherwise.
export function recall(name, otherwise) {
  return kept[name] ?? otherwise;
}

// remember keeps a value under a name. Names are those of web/layout.go.
export function remember(name, value) {
  if (JSON.stringify(kept[name]) === JSON.stringify(value)) return;
  kept[name] = value;
  clearTimeout(timer);
  timer = setTimeout(send, pause);
}

// size and keepSize are for the inside of a pane, such as the width of a tree: whole pixels under a name of its own.
export function size(name, otherwise) {
  return recall("sizes", {})[name] ?? otherwise;
}

export function keepSize(name, pixels) {
  remember("sizes", { ...recall("sizes", {}), [name]: Math.round(pixels) });
}

async function send() {
  clearTimeout(timer);
  timer = 0;
  try {
    await fetch("/preferences/workspace", {
      method: "PUT", headers: { "Content-Type": "application/json" }, body: JSON.stringify(kept), keepalive: true,
    });
  } catch {
    // sandboxd is away: the next change brings all of it
  }
}

globalThis.addEventListener?.("pagehide", () => timer && send());
