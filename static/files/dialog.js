// Questions that need an answer before anything goes on.
import { h, icon } from "../js/dom.js";

// ask shows a dialog and gives the value of the button that was pressed, or "" when it was closed.
// buttons: [{value, text, kind, usual}]: the usual one has the focus, and harms nothing. body: elements between the text and the buttons.
export function ask({ title, text = "", body = [], buttons, wide = false }) {
  return new Promise((resolve) => {
    const id = `ask-${Math.random().toString(36).slice(2)}`;
    const close = h("button", { type: "button", class: "button bare square low", "aria-label": "Close", click: () => dialog.close("") }, icon("close"));
    // One that only closes is not what Enter in a field presses.
    const button = (b) => h("button", { type: b.value ? "submit" : "button", class: `button ${b.kind ?? ""}`, value: b.value, autofocus: b.usual, formnovalidate: !b.checks, click: b.value ? null : () => dialog.close("") }, b.text);
    const form = h("form", { method: "dialog", class: "sheet" },
      h("div", { class: "sheet-head" }, h("div", {}, h("h2", { id }, title), text && h("p", { class: "quiet" }, text)), close),
      body,
      h("div", { class: "buttons end" }, buttons.map(button)));
    const dialog = h("dialog", { class: wide ? "wide" : "", "aria-labelledby": id }, form);
    dialog.addEventListener("keydown", (event) => event.stopPropagation());
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close(""));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue);
    });
    document.body.append(dialog);
    dialog.returnValue = "";
    dialog.showModal();
  });
}

// sure asks before something that cannot be undone.
export function sure({ title, text, act, body }) {
  return ask({ title, text, body, buttons: [{ value: "", text: "Cancel", usual: true }, { value: "yes", text: act, kind: "danger" }] }).then((v) => v === "yes");
}

// tell shows what went wrong where there is no better place.
export function tell(title, text) {
  return ask({ title, text, buttons: [{ value: "", text: "Close", kind: "primary", usual: true }] });
}
