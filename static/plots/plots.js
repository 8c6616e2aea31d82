// Loaded by pages with plots. <sandbox-metrics> draws what a sandbox uses, follows it live, and zooms; each range has an address.
import { h, icon } from "../js/dom.js";
import { live } from "../js/live.js";
import { loaded } from "../js/loaded.js";
import { onResume, pageSignal } from "../js/page_lifecycle.js";
import { delayAfter } from "../js/reconnect.js";
import { watchTheme } from "../terminal/theme.js";
import { exact, iso } from "./format.js";
import { readLook } from "./look.js";
import { Plot } from "./plot.js";
import { anything, append, scaled, within } from "./series.js";
import "./usage.js";
import "uplot/dist/uPlot.min.css";
import "../css/metrics.css";
import "../css/usage.css";
import "../css/tries.css";

const shortest = 30; // s
const kept = 30 * 86400; // s
const patience = 300; // ms for the live connection, which is open before the figures are asked for
const settle = 700; // ms after a change, which the server's history has soon

class SandboxMetrics extends HTMLElement {
  #left = new AbortController();
  #plots = [];
  #look = null;
  #series = null;
  #unzoomed = ""; // the query before the zoom; the server's usual range without one
  #shown = null; // the query that #series answers
  #channel = null;
  #timer = 0; // of the next load
  #asked = 0; // loads so far
  #failures = 0;
  #loading = false;
  #ticks = []; // that came while the figures were asked for, which may have them or not
  #pointing = false;

  get signal() {
    return this.#left.signal;
  }

  connectedCallback() {
    const { signal } = this;
    this.#plots = [...this.querySelectorAll("[data-plot]")].map((section) => new Plot(section, this));
    this.#look = readLook(this);
    watchTheme(() => {
      this.#look = readLook(this);
      this.#draw();
    }, signal);
    this.addEventListener("click", (event) => this.#click(event));
    this.querySelector("[data-table]").addEventListener("toggle", (event) => event.target.open && this.#loadParts());
    addEventListener("popstate", () => this.#show(), { signal });
    document.addEventListener("visibilitychange", () => this.#follow(), { signal });
    onResume(() => this.#loadSoon(0), { signal });
    localise(this);
    this.#follow();
    this.#loadSoon(this.#channel ? patience : 0);
  }

  disconnectedCallback() {
    this.#left.abort();
    this.#stop();
  }

  // #query is the stretch of time that the page's address names.
  #query() {
    const all = new URLSearchParams(location.search);
    return new URLSearchParams(["range", "since", "until"].flatMap((name) => (all.has(name) ? [[name, all.get(name)]] : []))).toString();
  }

  // #follow follows the figures while they are seen, and only where they go on.
  #follow() {
    const wanted = !document.hidden && !/(^|&)until=/.test(this.#query());
    if (!wanted) this.#stop();
    if (!wanted || this.#channel) return;
    const channel = live.open(this.dataset.topic);
    this.#channel = channel;
    channel.addEventListener("opened", () => this.#loadSoon(0));
    channel.addEventListener("tick", (event) => this.#tick(JSON.parse(event.data)));
    channel.addEventListener("change", (event) => this.#changed(event.data));
    channel.addEventListener("ended", (event) => this.#ended(event.data));
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#channel?.close();
    this.#channel = null;
    this.#ticks = [];
  }

  #ended(problem) {
    this.#channel = null;
    const { status, detail } = problem ? JSON.parse(problem) : {};
    if ([403, 404, 410].includes(status)) return this.#complain(detail);
    setTimeout(() => this.#follow(), delayAfter(this.#failures++));
  }

  // #changed asks anew when the state changes, until the history has it.
  #changed(state, tries = 5) {
    setTimeout(async () => {
      if (this.#channel && (await this.#load()) && this.#series.changes.at(-1)?.state !== state && tries) this.#changed(state, tries - 1);
    }, settle);
  }

  #tick(tick) {
    if (this.#loading) this.#ticks.push(tick);
    if (!this.#series?.live || this.#shown !== this.#query()) return;
    append(this.#series, tick);
    this.#draw();
    if (tick.oom_kills) this.#changed(tick.state, 0);
  }

  #loadSoon(after) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#load(), after);
  }

  // #load asks for the figures and draws them. It returns whether they came.
  async #load() {
    clearTimeout(this.#timer);
    const query = this.#query();
    const mine = ++this.#asked;
    this.#loading = true;
    try {
      const series = await this.#fetch(query);
      if (mine !== this.#asked) return false; // a later one is under way
      this.#failures = 0;
      series.known = series.until;
      this.#series = series;
      this.#shown = query;
      for (const tick of this.#ticks) if (series.live) append(series, tick);
      this.querySelector("[data-problem]")?.remove();
      this.#draw();
      return true;
    } catch (problem) {
      if (mine !== this.#asked || pageSignal().aborted) return false;
      this.#complain(problem.message, problem.final);
      if (!problem.final) this.#loadSoon(delayAfter(this.#failures++, { first: 1000 }));
      return false;
    } finally {
      if (mine === this.#asked) {
        this.#loading = false;
        this.#ticks = [];
      }
    }
  }

  async #fetch(query) {
    const response = await fetch(`${this.dataset.series}&${query}`, { signal: pageSignal() }).catch(() => null);
    if (!response) throw new Error("The server cannot be reached. Trying again…");
    if (response.ok) return response.json();
    const { detail, status } = await response.json().catch(() => ({}));
    throw Object.assign(new Error(detail ?? "The figures did not come."), { final: status >= 400 && status < 500 && status !== 429 });
  }

  // #complain says why there are no figures, or no newer ones.
  #complain(text, final = true) {
    if (!this.#series) this.#showPlots(false);
    const notes = this.querySelector("#metrics-notes");
    notes.querySelector("[data-problem]")?.remove();
    notes.prepend(
      h("div", { class: "notice tone-bad", role: "alert", "data-problem": true }, icon("warn"),
        h("div", { class: "notice-body" }, h("strong", {}, "The figures cannot be shown right now"), h("p", {}, text)),
        !final && h("button", { class: "button low", type: "button", click: () => this.#loadSoon(0) }, "Try again")),
    );
  }

  #draw() {
    if (!this.#series) return;
    const some = anything(this.#series);
    this.#showPlots(some);
    this.querySelector("[data-empty]").hidden = some;
    if (some) for (const plot of this.#plots) plot.draw(this.#series, this.#look);
  }

  #showPlots(shown) {
    this.querySelector("[data-plots]").hidden = this.querySelector("[data-legend]").hidden = !shown;
  }

  // pointed moves the cursors of all plots together.
  pointed(from, time) {
    if (this.#pointing) return;
    this.#pointing = true;
    for (const plot of this.#plots) if (plot !== from) plot.point(time);
    this.#pointing = false;
  }

  // preview shows a stretch with the figures at hand.
  preview(stretch) {
    if (!this.#series) return;
    Object.assign(this.#series, this.#bounded(stretch), { live: false });
    this.#draw();
  }

  zoom(stretch) {
    const { since, until } = this.#bounded(stretch);
    this.preview({ since, until });
    this.#go(new URLSearchParams({ since: iso(since), until: iso(until) }));
  }

  zoomBy(factor, around) {
    if (this.#series) this.zoom(scaled(this.#series, factor, around));
  }

  // reset ends the zoom.
  reset() {
    if (zoomed(this.#query())) this.#go(this.#unzoomed);
  }

  #bounded(stretch) {
    const now = this.#newest();
    return within(stretch, now - kept, now, shortest);
  }

  // #newest is the server's time, or this computer's when a stretch of the past is shown.
  #newest() {
    return this.#series.live ? this.#series.until : Math.max(Date.now() / 1000, this.#series.until);
  }

  #click(event) {
    const link = event.target.closest("a[data-range], a[data-reset]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (link.hasAttribute("data-reset")) return this.reset();
    this.#go(new URLSearchParams({ range: new URL(link.href).searchParams.get("range") }));
  }

  // #go leads to another stretch of time, from which the browser's button leads back.
  #go(query) {
    if (!zoomed(this.#query())) this.#unzoomed = this.#query();
    history.pushState(null, "", `${this.dataset.page}&${query}`);
    this.#show();
  }

  #show() {
    this.#ticks = [];
    this.#follow();
    this.#load();
    this.#loadParts();
  }

  // #loadParts swaps in what the server draws for a range: the links, the note and the table.
  async #loadParts() {
    const query = this.#query();
    const response = await fetch(`${this.dataset.page}&${query}`, { headers: { "HX-Request": "true" }, signal: pageSignal() }).catch(() => null);
    if (!response?.ok || query !== this.#query()) return;
    const parts = h("template");
    parts.innerHTML = await response.text(); // of the server, which escapes
    const focused = document.activeElement?.dataset?.range;
    for (const part of parts.content.querySelectorAll("[id^=metrics-]")) document.getElementById(part.id)?.replaceWith(part);
    if (focused) this.querySelector(`[data-range="${CSS.escape(focused)}"]`)?.focus();
    localise(this);
    this.#draw();
  }
}

// zoomed says whether a query names a stretch of time that is none of the ranges.
function zoomed(query) {
  return /(^|&)(since|until)=/.test(query);
}

// localise writes times in the reader's own time.
function localise(root) {
  for (const time of root.querySelectorAll("time[data-exact]")) time.textContent = exact(Date.parse(time.dateTime) / 1000);
}

customElements.define("sandbox-metrics", SandboxMetrics);
loaded("plots");
