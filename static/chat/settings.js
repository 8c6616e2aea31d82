// What an agent offers to choose: its modes, models and options (web/api_chat_shape.go, settingsShape).
import { h, icon } from "../js/dom.js";
import { shown } from "./model.js";

// settingsOf draws a select for each option in place of those that are there, unless they are the same. choose(id, value) is told of a choice.
export function settingsOf(place, options, choose) {
  const key = JSON.stringify(options);
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  place.replaceChildren(...options.filter((o) => o.values.length).map((o) => {
    const known = o.values.some((v) => v.id === o.value);
    const values = known || !o.value ? o.values : [{ id: o.value, name: o.value }, ...o.values];
    const select = h("select", { class: "input", "aria-label": shown(o.name || o.id), title: shown(o.name || o.id), change: () => choose(o.id, select.value) },
      values.map((v) => h("option", { value: v.id, selected: v.id === o.value }, shown(v.name))));
    return h("span", { class: "select" }, select, icon("down"));
  }));
}
