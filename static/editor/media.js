// Images, audio and video in the browser's own elements, which run nothing.
import { button, h } from "../js/dom.js";

// picture shows an image. An SVG in an <img> can neither run scripts nor load anything.
export function picture(url, { title, failed }) {
  const img = h("img", { src: url, alt: title, draggable: "false", decoding: "async" });
  const element = h("div", { class: "picture-view", tabindex: "0" }, img);
  const note = h("span", {});
  const level = h("span", { class: "zoom-level" });
  const shrink = button("minus", "Fit", () => set(false));
  const grow = button("plus", "Full size", () => set(true));
  const set = (full) => {
    element.classList.toggle("full", full);
    level.textContent = full ? "100 %" : "Fit";
    shrink.disabled = !full;
    grow.disabled = full;
  };
  set(false);
  img.addEventListener("load", () => (note.textContent = `${img.naturalWidth} × ${img.naturalHeight}`));
  img.addEventListener("error", () => failed());
  img.addEventListener("dblclick", () => set(!element.classList.contains("full")));
  return { element, note, tools: h("span", { class: "zoom" }, shrink, level, grow) };
}

// player plays audio or video.
export function player(kind, url, { title, failed }) {
  const media = h(kind, { src: url, controls: true, preload: "metadata", "aria-label": title });
  media.addEventListener("error", () => failed());
  return { element: h("div", { class: "picture-view" }, media), end: () => media.removeAttribute("src") };
}
