// Creates elements and icons, and names the command key of this platform.

// h creates an element. A function attribute becomes an event listener, true becomes an empty attribute; false, null and
// undefined are left out, also among the children.
export function h(tag, attributes = {}, ...children) {
  const e = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") e.addEventListener(name, value);
    else if (value !== false && value !== null && value !== undefined) e.setAttribute(name, value === true ? "" : value);
  }
  e.append(...children.flat(Infinity).filter((c) => c !== null && c !== undefined && c !== false));
  return e;
}

const ns = "http://www.w3.org/2000/svg";
const shapes = {};
const cache = new Map();

// addShapes adds icons beyond those in the page (views/icons.go), by name, as SVG source.
export function addShapes(more) {
  Object.assign(shapes, more);
}

// icon returns a new icon by name.
export function icon(name, className = name === "state-busy" ? "turning" : "") {
  if (!cache.has(name)) cache.set(name, drawIcon(name));
  const svg = cache.get(name).cloneNode(true);
  svg.setAttribute("class", `icon ${className}`.trim());
  return svg;
}

function drawIcon(name) {
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("aria-hidden", "true");
  if (shapes[name]) {
    svg.setAttribute("viewBox", "0 0 16 16");
    svg.innerHTML = shapes[name]; // constants from icons.js
  } else {
    const use = document.createElementNS(ns, "use");
    use.setAttribute("href", `#i-${name}`);
    svg.append(use);
  }
  return svg;
}

// button creates a button with an icon, a text, or both. Without a text, title is its accessible name.
export function button(name, title, press, { text = "", kind = "bare low", ...rest } = {}) {
  const square = text ? "" : " square";
  return h("button", { type: "button", class: `button ${kind}${square}`, title: text ? null : title, "aria-label": text ? null : title, click: press, ...rest }, name && icon(name), text);
}

// download lets the browser fetch url. Without a name the server names the file.
export function download(url, name = "") {
  const link = h("a", { href: url, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
}

export const isMac = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? "");
export const command = (event) => (isMac ? event.metaKey : event.ctrlKey);
export const keyName = (key) => (isMac ? `⌘${key}` : `Ctrl+${key}`);
