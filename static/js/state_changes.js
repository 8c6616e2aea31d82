// Announces sandboxes' state changes to screen readers. Updates only bring the new state, so the page keeps the last one.
import { announce } from "./announce.js";

const last = new Map(); // name → state

function check() {
  for (const state of document.querySelectorAll("[data-name] .state-word")) {
    const name = state.closest("[data-name]").dataset.name;
    note(name, state, `${name}: `);
  }
  const current = document.querySelector("#ws-state .state-word");
  if (current) note("", current, "");
}

function note(key, element, prefix) {
  const now = element.textContent.trim();
  const before = last.get(key);
  last.set(key, now);
  if (before && before !== now) announce(prefix + now);
}

check();
document.addEventListener("sandboxd:parts", check);
