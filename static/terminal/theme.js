// Reads a terminal's colours and font from CSS variables, and watches them.
import { h } from "../js/dom.js";

const ansi = ["black", "red", "green", "yellow", "blue", "magenta", "cyan", "white"];

// readTheme returns xterm.js options for an element. It reads variables through a property, because light-dark() and
// color-mix() are not resolved in variables themselves.
export function readTheme(element) {
  const probe = h("span", { hidden: true });
  element.append(probe);
  const colour = (name) => {
    probe.style.color = `var(${name})`;
    return getComputedStyle(probe).color;
  };
  const theme = {
    background: colour("--terminal-bg"),
    foreground: colour("--terminal-ink"),
    cursor: colour("--terminal-cursor"),
    cursorAccent: colour("--terminal-bg"),
    selectionBackground: colour("--terminal-selection"),
    scrollbarSliderBackground: colour("--terminal-scroll"),
  };
  ansi.forEach((name, i) => {
    theme[name] = colour(`--ansi-${i}`);
    theme[`bright${name[0].toUpperCase()}${name.slice(1)}`] = colour(`--ansi-${i + 8}`);
  });
  const font = getComputedStyle(element);
  const look = { theme, fontFamily: font.fontFamily, fontSize: Number.parseFloat(font.fontSize) || 13 };
  probe.remove();
  return look;
}

// awaitFont resolves when an element's font is there: to true when it was not before, and what is drawn has to be drawn again.
// A canvas draws with another font meanwhile, and does not say so.
export async function awaitFont(element) {
  const { fontFamily, fontSize } = getComputedStyle(element);
  const font = `${fontSize} ${fontFamily}`;
  if (!document.fonts || document.fonts.check(font)) return false;
  return document.fonts.load(font).then((found) => found.length > 0, () => false); // without a network the system's stays
}

// measureFont has xterm.js measure its font again, which it does when the font's name changes.
export function measureFont(screen) {
  const { fontFamily } = screen.options;
  screen.options.fontFamily = "monospace";
  screen.options.fontFamily = fontFamily;
}

// watchTheme calls changed, at most once per frame, when the page or the system may have switched between light and dark.
export function watchTheme(changed, signal) {
  let frame = 0;
  const soon = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(changed);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", soon, { signal });
  matchMedia("(prefers-contrast: more)").addEventListener("change", soon, { signal });
  document.addEventListener("themechange", soon, { signal });
  const attributes = new MutationObserver(soon);
  attributes.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "class", "style"] });
  signal.addEventListener("abort", () => {
    attributes.disconnect();
    cancelAnimationFrame(frame);
  });
}

// toHex converts a CSS colour to #rrggbb, which xterm.js decorations need.
export function toHex(colour, element) {
  const probe = h("span", { hidden: true });
  probe.style.color = colour;
  element.append(probe);
  const context = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  context.fillStyle = getComputedStyle(probe).color;
  probe.remove();
  context.fillRect(0, 0, 1, 1);
  return `#${[...context.getImageData(0, 0, 1, 1).data.slice(0, 3)].map((c) => c.toString(16).padStart(2, "0")).join("")}`;
}
