// What an agent offers to choose: its modes, models and options (web/api_chat_shape.go, settingsShape).
import { h, icon } from "../js/dom.js";
import { shown } from "./model.js";

// settingsOf draws a select for each option in place of those that are there, unless they are the same. choose(id, value) is told of a choice.
export function settingsOf(place, options, choose) {
  const key = JSON.stringify(options);
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  const choices = options.map((o) => ({ ...o, values: o.values.some((v) => v.id === o.value) || !o.value ? o.values : [{ id: o.value, name: o.value }, ...o.values] }));
  place.replaceChildren(...choices.filter((o) => o.values.length > 1).map((o) => {
    const select = h("select", { class: "input", "aria-label": shown(o.name || o.id), title: shown(o.name || o.id), change: () => choose(o.id, select.value) },
      o.values.map((v) => h("option", { value: v.id, selected: v.id === o.value }, shown(v.name))));
    return h("span", { class: "select" }, select, icon("down"));
  }));
}
