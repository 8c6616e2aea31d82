// Dialogs that ask for a decision.
import { h, icon } from "../js/dom.js";

// modal shows a form in a dialog until that is closed, and resolves to its return value, "" by default. id is that of the title.
export function modal(id, form, className = "") {
  return new Promise((resolve) => {
    const dialog = h("dialog", { class: className, "aria-labelledby": id }, form);
    dialog.addEventListener("keydown", (event) => event.stopPropagation());
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close("")); // the backdrop
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
    document.body.append(dialog);
    dialog.returnValue = "";
    dialog.showModal();
  });
}

const close = (event) => event.target.closest("dialog").close("");

// closeButton is the cross in the corner of a dialog.
export function closeButton() {
  return h("button", { type: "button", class: "button bare square low", "aria-label": "Close", click: close }, icon("close"));
}

// ask resolves to the value of the pressed button, or "" when the dialog was closed. buttons: [{value, text, kind, usual}]; the
// usual one gets the focus and must be harmless. body: elements between the text and the buttons.
export function ask({ title, text = "", body = [], buttons, wide = false }) {
  const id = `ask-${Math.random().toString(36).slice(2)}`;
  // A button that only closes must not be the one that Enter in a field presses.
  const button = (b) => h("button", { type: b.value ? "submit" : "button", class: `button ${b.kind ?? ""}`, value: b.value, autofocus: b.usual, formnovalidate: true, click: b.value ? null : close }, b.text);
  return modal(id, h("form", { method: "dialog", class: "sheet" },
    h("div", { class: "sheet-head" }, h("div", {}, h("h2", { id }, title), text && h("p", { class: "quiet" }, text)), closeButton()),
    body,
    h("div", { class: "buttons end" }, buttons.map(button))), wide ? "wide" : "");
}

// confirm asks before something that cannot be undone.
export function confirm({ title, text, act, body }) {
  return ask({ title, text, body, buttons: [{ value: "", text: "Cancel", usual: true }, { value: "yes", text: act, kind: "danger" }] }).then((v) => v === "yes");
}

// tell shows a message where there is no better place for it.
export function tell(title, text) {
  return ask({ title, text, buttons: [{ value: "", text: "Close", kind: "primary", usual: true }] });
}
