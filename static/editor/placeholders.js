// Placeholders for files that are not shown, or not yet.
import { problemOf } from "../files/api.js";
import { h, icon } from "../js/dom.js";

// failure shows an error. download() is optional.
export function failure(err, download) {
  return { element: h("div", { class: "empty" }, icon("warn"), h("p", {}, `This file cannot be shown: ${problemOf(err).message}`), download && h("button", { type: "button", class: "button", click: download }, icon("download"), "Download")) };
}

// skeleton stands for text that is loading.
export function skeleton() {
  return h("div", { class: "skeletons", "aria-label": "Loading…", role: "status" }, [62, 44, 71, 38, 55, 66, 29].map((w) => {
    const line = h("span", { class: "skeleton" });
    line.style.width = `${w}%`;
    return line;
  }));
}
