// <sandbox-logs> is a list of log lines, or of entries of the activity, newest first. It follows them: new ones are added on top,
// but not while the user reads further down, has selected text, or has paused it.
import { clock, dateTime, day } from "./log_times.js";
import { live } from "./live.js";
import { onResume } from "./page_lifecycle.js";
import { delayAfter } from "./reconnect.js";
import { newestID, oldestID, orderEntries } from "./log_order.js";
import { Waiting, mostRows } from "./log_waiting.js";

const readFrom = 80; // px that the page may be scrolled before new lines wait

class SandboxLogs extends HTMLElement {
  #left = new AbortController();
  #channel = null;
  #waiting = null;
  #on = false;
  #paused = false;
  #failures = 0;
  #timer = 0;
  #seen = "";

  connectedCallback() {
    const { signal } = this.#left;
    this.#waiting = new Waiting(this.dataset.one, this.dataset.many);
    localise(this);
    groupByDay(this.#rows);
    if (!this.dataset.topic) return;
    this.#seen = this.dataset.seen;
    this.#on = this.dataset.on !== undefined;
    this.querySelector("[data-tail]").hidden = false;
    this.querySelector("[data-live]").addEventListener("click", () => this.#switch(!this.#on));
    this.querySelector("[data-pause]").addEventListener("click", () => this.#pause(!this.#paused));
    this.querySelector("[data-new]").addEventListener("click", () => this.#catchUp());
    addEventListener("scroll", () => this.#flush(), { signal, passive: true });
    document.addEventListener("selectionchange", () => this.#flush(), { signal });
    document.addEventListener("visibilitychange", () => this.#follow(), { signal });
    onResume(() => this.#follow(), { signal });
    this.#follow();
  }

  disconnectedCallback() {
    this.#left.abort();
    this.#stop();
  }

  get #rows() {
    return this.querySelector(".log-lines");
  }

  #switch(on) {
    this.#on = on;
    this.#paused = false;
    this.querySelector("[data-behind]").hidden = true;
    this.#follow();
  }

  #pause(paused) {
    this.#paused = paused;
    this.#flush();
    this.#show();
  }

  // #follow follows the log while it is seen. Each time it asks for what came since the newest line that is here.
  #follow() {
    if (!this.#on || document.hidden) this.#stop();
    else if (!this.#channel) this.#open();
    this.#show();
  }

  #open() {
    clearTimeout(this.#timer);
    const channel = live.open(this.dataset.topic, this.#seen);
    this.#channel = channel;
    channel.addEventListener("opened", () => this.#show("Live"));
    channel.addEventListener("lines", (event) => this.#take(event.data));
    channel.addEventListener("lost", () => {
      this.#stop();
      this.#open(); // asks from the newest line on, once there is a connection
      this.#show("Reconnecting…");
    });
    channel.addEventListener("ended", (event) => this.#ended(event.data));
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#channel?.close();
    this.#channel = null;
  }

  #ended(problem) {
    this.#channel = null;
    const { status, detail } = problem ? JSON.parse(problem) : {};
    if (status >= 400 && status < 500) {
      this.#on = false;
      this.querySelector("[data-behind-text]").textContent = detail;
      this.querySelector("[data-behind]").hidden = false;
      return this.#show();
    }
    this.#timer = setTimeout(() => this.#follow(), delayAfter(this.#failures++));
    this.#show("Reconnecting…");
  }

  #take(html) {
    this.#failures = 0;
    const part = document.createElement("template");
    part.innerHTML = html; // of the server, which escapes
    localise(part.content);
    const rows = [...part.content.children];
    const ids = rows.map((row) => row.dataset.id).filter(Boolean);
    if (ids.length) this.#seen = `after=${newestID(ids)}`;
    this.#waiting.add(rows);
    this.#flush();
  }

  // #reading tells whether adding lines would move what the user looks at.
  get #reading() {
    const selection = getSelection();
    if (selection && !selection.isCollapsed && this.#rows.contains(selection.anchorNode)) return true;
    return this.#rows.getBoundingClientRect().top < readFrom - 40 && scrollY > readFrom;
  }

  #flush() {
    if (!this.#waiting.count) return;
    if (this.#paused || this.#reading) return this.#show();
    const rows = this.#rows;
    rows.prepend(...this.#waiting.take());
    this.querySelector("[data-empty]")?.remove();
    for (const old of rows.querySelectorAll("[data-day]")) old.remove();
    if (rows.classList.contains("activity")) orderEntries(rows);
    while (rows.childElementCount > mostRows) rows.lastElementChild.remove();
    groupByDay(rows);
    this.#moveEnd();
    this.#show();
  }

  // #moveEnd lets the link to older lines begin after the last one that is still here.
  #moveEnd() {
    const ids = [...this.#rows.children].map((row) => row.dataset.id).filter(Boolean);
    const link = this.querySelector("[data-older]");
    if (!ids.length || !link || this.#rows.childElementCount < mostRows) return;
    const url = new URL(link.href);
    url.searchParams.set(link.dataset.older || "next", oldestID(ids));
    link.href = url;
  }

  #catchUp() {
    this.#paused = false;
    getSelection()?.removeAllRanges();
    scrollTo({ top: 0 });
    this.#flush();
    this.#show();
  }

  #show(word = this.#channel ? this.querySelector("[data-state]").dataset.word ?? "" : "") {
    const { count } = this.#waiting;
    const state = this.querySelector("[data-state]");
    state.dataset.word = word;
    const text = !this.#on ? "" : this.#paused ? "Paused" : word === "Live" ? "" : word;
    if (state.textContent !== text) state.textContent = text;
    this.querySelector("[data-live]").setAttribute("aria-checked", this.#on);
    const pause = this.querySelector("[data-pause]");
    pause.hidden = !this.#on;
    pause.textContent = this.#paused ? "Resume" : "Pause";
    const more = this.querySelector("[data-new]");
    more.hidden = !count;
    more.textContent = this.#waiting.text;
    this.toggleAttribute("data-following", this.#on && word === "Live" && !this.#paused);
  }
}

// localise writes times in the reader's own zone.
function localise(root) {
  for (const time of root.querySelectorAll("time[data-exact]")) {
    const date = new Date(time.dateTime);
    time.textContent = time.dataset.clock === undefined ? dateTime(date, new Date()) : clock(date);
    const link = time.closest("[title]");
    if (link) link.title = date.toLocaleString(undefined, { dateStyle: "full", timeStyle: "long", hourCycle: "h23" });
  }
}

// groupByDay puts a heading over the entries of each day, in the reader's own zone.
function groupByDay(rows) {
  if (!rows?.classList.contains("activity")) return;
  for (const old of rows.querySelectorAll("[data-day]")) old.remove();
  let above = "";
  for (const time of rows.querySelectorAll("time[data-clock]")) {
    const text = day(new Date(time.dateTime), new Date());
    if (text === above) continue;
    above = text;
    const heading = Object.assign(document.createElement("li"), { className: "activity-day", textContent: text });
    heading.dataset.day = "";
    time.closest("li").before(heading);
  }
}

customElements.define("sandbox-logs", SandboxLogs);

// The fields of the form are in the reader's own zone; what is sent has one.
const form = document.getElementById("log-form");
for (const field of form?.querySelectorAll("[type=datetime-local]") ?? []) {
  if (field.value) field.value = new Date(Date.parse(`${field.value}Z`) - new Date(`${field.value}Z`).getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
for (const zone of form?.querySelectorAll("[data-utc]") ?? []) zone.remove();
form?.addEventListener("formdata", ({ formData }) => {
  for (const [name, value] of [...formData]) {
    if (!value) formData.delete(name);
    else if (["since", "until"].includes(name)) formData.set(name, new Date(value).toISOString());
  }
  if (formData.get("range") !== "custom") for (const name of ["since", "until"]) formData.delete(name);
});
form?.addEventListener("submit", () => busy(true));
addEventListener("pageshow", (event) => event.persisted && busy(false));

// busy shows that a search is under way.
function busy(on) {
  document.querySelector("sandbox-logs")?.setAttribute("aria-busy", on);
  const button = form.querySelector("[type=submit]");
  button.classList.toggle("going", on);
  button.textContent = on ? "Searching…" : "Search";
}
