// The colours of plots, from the page's variables. light-dark() is resolved in properties only, so a probe has them.
import { h } from "../js/dom.js";

// readLook returns the colours and the font for plots in an element.
export function readLook(element) {
  const probe = h("span", { hidden: true });
  element.append(probe);
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const family = getComputedStyle(element).fontFamily;
  const look = {
    text: colour("ink-2"), surface: colour("surface"), grid: colour("line"), band: fade(colour("sunken"), 0.7), hatch: fade(colour("ink-3"), 0.45),
    limit: colour("bad"), first: colour("accent"), second: colour("busy"), quiet: colour("ink-3"),
    font: (ratio = 1) => `${12 * ratio}px ${family}`,
  };
  probe.remove();
  return look;
}

// fade makes a colour, as computed, transparent.
export function fade(colour, alpha) {
  const parts = colour.match(/[\d.]+/g) ?? [0, 0, 0];
  return `rgba(${parts.slice(0, 3).join(", ")}, ${alpha})`;
}
