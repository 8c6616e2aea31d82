// Toasts: a message at the bottom of the page, for as long as reading it takes, with an optional action.
import { announce } from "./announce.js";
import { h, icon } from "./dom.js";

const minDuration = 8000; // ms
const perCharacter = 90; // ms
const forAction = 3000; // ms more to decide on the action

let element = null;
let timer = 0;
let length = 0; // ms
let focusBefore = null; // what had the focus before it moved into the toast
let focusFallback = () => {};

// shownFor returns how long a text is shown, in ms.
export function shownFor(text, action) {
  return Math.max(minDuration, text.length * perCharacter) + (action ? forAction : 0);
}

// toast shows a text. action is {text, act}; bad marks an error; refocus() takes the focus when the toast had it and the
// element that had it before is gone.
export function toast(text, { action, bad = false, refocus = () => {} } = {}) {
  if (!find()) return;
  const act = action && h("button", { type: "button", class: "link", click: () => {
    hideToast();
    action.act();
  } }, action.text);
  const close = h("button", { type: "button", class: "toast-close", "aria-label": "Close", click: hideToast }, icon("close"));
  leave();
  focusFallback = refocus;
  element.setAttribute("role", bad ? "alert" : "group");
  element.classList.toggle("bad", bad);
  element.replaceChildren(...[bad && icon("warn"), h("span", {}, text), act, close].filter(Boolean));
  element.hidden = false;
  if (!bad) announce(text);
  length = shownFor(text, act);
  restart();
}

export function hideToast() {
  if (!element) return;
  leave();
  clearTimeout(timer);
  element.hidden = true;
}

// find finds the page's element. The toast stays while the pointer or the focus is in it.
function find() {
  if (element) return element;
  element = document.getElementById("toast");
  if (!element) return null;
  for (const kind of ["pointerenter", "focusin"]) element.addEventListener(kind, () => clearTimeout(timer));
  for (const kind of ["pointerleave", "focusout"]) element.addEventListener(kind, restart);
  element.addEventListener("focusin", (event) => {
    if (!element.contains(event.relatedTarget)) focusBefore = event.relatedTarget;
  });
  return element;
}

function restart() {
  clearTimeout(timer);
  timer = setTimeout(hideToast, length);
}

// leave returns the focus before the focused button is removed.
function leave() {
  if (!element.contains(document.activeElement)) return;
  if (focusBefore?.isConnected && focusBefore.checkVisibility()) focusBefore.focus({ preventScroll: true });
  else focusFallback();
}
