// The menu of the visible terminal: actions that have no key or no room on a small screen.
import { h, icon } from "./dom.js";
import { preference, setPreference } from "./preferences.js";

export function terminalMenu({ terminal, rename }) {
  const summary = h("summary", { class: "button bare square low", title: "Terminal menu", "aria-label": "Terminal menu" }, icon("dots"));
  const list = h("div", { class: "menu-list" });
  const menu = h("details", { class: "menu terminal-menu" }, summary, list);
  const item = (name, text, keys, act) => {
    const end = keys ? [h("kbd", { class: "key end" }, keys)] : [];
    const b = h("button", { class: "menu-item", type: "button" }, icon(name), text, ...end);
    b.addEventListener("click", () => {
      menu.open = false;
      act();
    });
    list.append(b);
    return b;
  };
  item("search", "Find…", "Ctrl ⇧ F", () => terminal()?.find());
  item("copy", "Scrollback and copy mode", "Ctrl ⇧ Space", () => terminal()?.select());
  item("note", "Copy all", "", () => terminal()?.copyAll());
  item("pencil", "Rename…", "F2", rename);
  list.append(h("div", { class: "menu-line" }));
  list.append(copyOnSelect());
  return menu;
}

function copyOnSelect() {
  const box = h("input", { type: "checkbox" });
  box.checked = preference("copy_on_select", false);
  box.addEventListener("change", () => setPreference("copy_on_select", box.checked));
  return h("label", { class: "menu-item" }, box, "Copy on select");
}
