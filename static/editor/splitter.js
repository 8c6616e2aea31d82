// The splitter between the tree and the editor, for pointer and keyboard. Its position is stored per user.
import { drag } from "../js/drag.js";
import { paneSize, setPaneSize } from "../js/preferences.js";
import { h } from "../js/dom.js";

const name = "tree";
const step = 16; // px per arrow key press
const least = 160;
const rest = 224; // px; the editor's minimum width

// fit clamps a width to what the pane has room for.
export function fit(width, room) {
  return Math.max(least, Math.min(width, room - rest));
}

export function splitter(editor) {
  const edge = h("div", { class: "tree-splitter", role: "separator", tabindex: "0", "aria-orientation": "vertical", "aria-label": "Width of the tree", title: "Drag, or use the arrow keys; double-click resets it" });
  const pane = () => editor.parentElement;
  const now = () => editor.getBoundingClientRect().left - pane().getBoundingClientRect().left;
  const set = (width, keep) => {
    const px = width && fit(width, pane().clientWidth);
    if (px) pane().style.setProperty("--tree", `${px}px`);
    else pane().style.removeProperty("--tree");
    edge.setAttribute("aria-valuenow", String(Math.round(px || now())));
    if (keep) setPaneSize(name, px || 0);
  };
  const kept = paneSize(name, 0);
  if (kept) pane()?.style.setProperty("--tree", `${kept}px`);
  edge.addEventListener("dblclick", () => set(0, true));
  edge.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -step, ArrowRight: step }[event.key];
    if (event.key === "Enter") set(0, true);
    else if (by) set(now() + by, true);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  edge.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    const left = pane().getBoundingClientRect().left;
    drag(edge, event, (e) => set(e.clientX - left, false), () => set(now(), true));
  });
  return edge;
}
