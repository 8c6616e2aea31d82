// Notes above an open file, with buttons.
import { h, icon } from "../js/dom.js";

// drawNotes draws notes by id. It returns whether the focused button is gone; otherwise that keeps the focus.
export function drawNotes(place, notes) {
  const had = place.contains(document.activeElement) && document.activeElement.getAttribute("data-act");
  const buttons = [];
  const press = (id, a) => {
    buttons.push(h("button", { type: "button", class: `button low${a.primary ? " primary" : ""}`, "data-act": `${id} ${a.text}`, click: a.act }, a.text));
    return buttons.at(-1);
  };
  place.replaceChildren(...[...notes].map(([id, n]) => h("div", { class: `editor-note tone-${n.tone ?? "still"}`, role: n.tone === "bad" || n.tone === "busy" ? "alert" : "status" },
    icon(n.icon ?? "note"), h("span", { class: "editor-note-text" }, n.text), h("span", { class: "editor-note-acts" }, (n.acts ?? []).map((a) => press(id, a))))));
  const again = buttons.find((b) => b.getAttribute("data-act") === had);
  again?.focus();
  return Boolean(had && !again);
}
