// <usage-plots> draws what was used of models, hour by hour or day by day. Each range is a page of its own.
import { h, icon } from "../js/dom.js";
import { pageSignal } from "../js/page_lifecycle.js";
import { watchTheme } from "../terminal/theme.js";
import { exact } from "./format.js";
import { readLook } from "./look.js";
import { Plot } from "./plot.js";

class UsagePlots extends HTMLElement {
  #left = new AbortController();
  #plots = [];
  #series = null;
  #pointing = false;

  get signal() {
    return this.#left.signal;
  }

  connectedCallback() {
    this.#plots = [...this.querySelectorAll("[data-plot]")].map((section) => new Plot(section, this));
    watchTheme(() => this.#draw(), this.signal);
    for (const time of this.querySelectorAll("time[data-exact]")) time.textContent = exact(Date.parse(time.dateTime) / 1000, 3600);
    this.#load();
  }

  disconnectedCallback() {
    this.#left.abort();
  }

  async #load() {
    const response = await fetch(this.dataset.series, { signal: pageSignal() }).catch(() => null);
    if (pageSignal().aborted) return;
    if (response?.ok) {
      this.querySelector("[data-notes]").replaceChildren();
      this.#series = await response.json();
      return this.#draw();
    }
    const { detail } = (await response?.json().catch(() => null)) ?? {};
    this.querySelector("[data-notes]").replaceChildren(
      h("div", { class: "notice tone-bad", role: "alert" }, icon("warn"),
        h("div", { class: "notice-body" }, h("strong", {}, "The figures cannot be shown right now"), h("p", {}, detail ?? "The server cannot be reached.")),
        h("button", { class: "button low", type: "button", click: () => this.#load() }, "Try again")),
    );
  }

  #draw() {
    const look = readLook(this);
    if (this.#series) for (const plot of this.#plots) plot.draw(this.#series, look);
  }

  // pointed moves the cursors of all plots together.
  pointed(from, time) {
    if (this.#pointing) return;
    this.#pointing = true;
    for (const plot of this.#plots) if (plot !== from) plot.point(time);
    this.#pointing = false;
  }

  // There is no zoom: the parts are hours and days.
  preview() {}
  zoom() {}
  zoomBy() {}
  reset() {}
}

customElements.define("usage-plots", UsagePlots);
