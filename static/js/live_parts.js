// <sandbox-live> keeps parts of the page up to date. It tells the user when they are not, and preserves the focus, an open
// menu and edited fields when parts are replaced.
import htmx from "./htmx.js";
import { live, present } from "./live.js";
import { delayAfter } from "./reconnect.js";

const patience = 3000; // ms; shorter interruptions are not reported
const focusable = "a[href], button, input, select, textarea, summary";
const refusals = ["signed-out", "other-account"];
let timer = 0;

// show shows one of the notes about the connection, or none.
function show(id) {
  clearTimeout(timer);
  timer = 0;
  document.body.toggleAttribute("data-stale", id === "offline");
  for (const note of ["offline", ...refusals]) {
    const element = document.getElementById(note);
    if (element) element.hidden = note !== id;
  }
}

// sayOffline reports a lost connection, unless a terminal's bar already does.
function sayOffline() {
  const said = document.querySelector(".link-state:is([data-state=silent], [data-state=reconnecting])")?.checkVisibility();
  show("offline");
  if (said) document.getElementById("offline").hidden = true;
}

live.addEventListener("connected", () => show(""));
live.addEventListener("silent", () => setTimeout(sayOffline)); // the terminal says it first
for (const why of refusals) live.addEventListener(why, () => show(why));
live.addEventListener("lost", () => {
  if (refusals.every((why) => document.getElementById(why)?.hidden !== false)) timer ||= setTimeout(sayOffline, patience);
});

class SandboxLive extends HTMLElement {
  #channel = null;
  #failures = 0;
  #timer = 0;
  #told = false;

  connectedCallback() {
    this.#open(this.dataset.seen);
  }

  disconnectedCallback() {
    clearTimeout(this.#timer);
    this.#channel.close();
  }

  #open(seen) {
    this.#channel = live.open(this.dataset.topic, seen);
    this.#channel.addEventListener("parts", (event) => this.#swap(event.data));
    this.#channel.addEventListener("lost", () => delete this.dataset.current);
    this.#channel.addEventListener("ended", (event) => this.#ended(event.data));
  }

  #swap(html) {
    this.#failures = 0;
    this.#told = true;
    htmx.swap(this, present(html, (id) => document.getElementById(id)), { swapStyle: "none", swapDelay: 0, settleDelay: 0 }, { contextElement: this });
    this.dataset.current = ""; // the page is up to date
    document.dispatchEvent(new CustomEvent("sandboxd:parts"));
  }

  // A topic that ended because this page was too slow is reopened. For a deleted sandbox the whole page is reloaded.
  #ended(problem) {
    delete this.dataset.current;
    if (this.#told && problem && [403, 404, 410].includes(JSON.parse(problem).status)) return location.reload();
    this.#timer = setTimeout(() => this.#open(""), delayAfter(this.#failures++));
  }
}

customElements.define("sandbox-live", SandboxLive);

// nameOf tells an element from others of its kind, also when rows have been added before it.
function nameOf(element) {
  return element.tagName + (element.id || element.getAttribute("aria-label") || element.getAttribute("href") || element.textContent.trim());
}

htmx.on("htmx:partialBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  if (target.id === "rows") fragment.firstElementChild?.classList.add("fresh");
  for (const menu of target.querySelectorAll("details.menu[open] > summary")) {
    [...fragment.querySelectorAll("details.menu > summary")].find((other) => nameOf(other) === nameOf(menu))?.parentElement.setAttribute("open", "");
  }
  for (const input of target.querySelectorAll("input[id]")) { // keep what the user has typed
    const next = input.value === input.defaultValue ? null : fragment.querySelector(`#${CSS.escape(input.id)}`);
    if (next) next.value = input.value;
  }
  if (!target.id || !target.contains(document.activeElement)) return;
  const at = [...target.querySelectorAll(focusable)].indexOf(document.activeElement);
  const name = nameOf(document.activeElement);
  queueMicrotask(() => {
    const present = [...(document.getElementById(target.id)?.querySelectorAll(focusable) ?? [])];
    (present.find((other) => nameOf(other) === name) ?? present[Math.min(at, present.length - 1)])?.focus({ preventScroll: true });
  });
});
