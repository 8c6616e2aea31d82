// Elements, icons and keys, for what the page's scripts draw themselves.
import { shapes } from "./icons.js";

// h makes an element. Attributes that are functions listen ("click"), true is present, false and null are left out.
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
const drawn = new Map();

// icon gives an icon of our own by name, or one of the page's.
export function icon(name, className = "") {
  if (!drawn.has(name)) drawn.set(name, draw(name));
  const svg = drawn.get(name).cloneNode(true);
  svg.setAttribute("class", `icon ${className}`.trim());
  return svg;
}

function draw(name) {
  const svg = document.createElementNS(ns, "svg");
  svg.setAttribute("aria-hidden", "true");
  if (shapes[name]) {
    svg.setAttribute("viewBox", "0 0 16 16");
    svg.innerHTML = shapes[name]; // a constant of ours
  } else {
    const use = document.createElementNS(ns, "use");
    use.setAttribute("href", `#i-${name}`);
    svg.append(use);
  }
  return svg;
}

// button is a button with an icon, a text, or both; without a text its title is its name.
export function button(name, title, press, { text = "", kind = "bare low", ...rest } = {}) {
  const square = text ? "" : " square";
  return h("button", { type: "button", class: `button ${kind}${square}`, title: text ? null : title, "aria-label": text ? null : title, click: press, ...rest }, name && icon(name), text);
}

// command is Cmd where that is the key for commands.
export const isMac = /Mac|iPhone|iPad/.test(globalThis.navigator?.platform ?? "");
export const command = (event) => (isMac ? event.metaKey : event.ctrlKey);
export const keyName = (key) => (isMac ? `⌘${key}` : `Ctrl+${key}`);

// later runs f once, so many ms after the last call; flush runs what waits at once.
export function later(f, ms) {
  let timer = 0;
  const call = (...args) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      timer = 0;
      f(...args);
    }, ms);
  };
  call.cancel = () => {
    clearTimeout(timer);
    timer = 0;
  };
  return call;
}

// soon runs f once for all calls within so many ms, the first of which starts the time: it comes however often it is called.
export function soon(f, ms) {
  let timer = 0;
  return () => {
    timer ||= setTimeout(() => {
      timer = 0;
      f();
    }, ms);
  };
}

// say reads a text aloud, for those who listen.
export function say(text) {
  const place = document.getElementById("announce");
  if (place) place.textContent = text;
}
