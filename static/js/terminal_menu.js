// The menu of the visible terminal: actions that have no key or no room on a small screen.
import { h, icon, isMac } from "./dom.js";
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
  item("search", "Find…", isMac ? "⌘ F" : "Ctrl ⇧ F", () => terminal()?.find());
  item("copy", "Copy", isMac ? "⌘ C" : "Ctrl ⇧ C", () => terminal()?.copy());
  item("copy", "Copy all", "", () => terminal()?.copyAll());
  item("paste", "Paste", isMac ? "⌘ V" : "Ctrl ⇧ V", () => terminal()?.pasteClipboard());
  item("clock", "Scroll back and select by keyboard", "Ctrl ⇧ Space", () => terminal()?.select());
  item("pencil", "Rename…", "", rename);
  const allowed = choice("Let programs set the clipboard", (yes) => terminal() && (terminal().clipboard.allowed = yes));
  list.append(h("div", { class: "menu-line" }), copyOnSelect(), allowed);
  menu.addEventListener("toggle", () => menu.open && (allowed.firstChild.checked = Boolean(terminal()?.clipboard.allowed)));
  return menu;
}

function choice(text, changed) {
  return h("label", { class: "menu-item" }, h("input", { type: "checkbox", change: (event) => changed(event.target.checked) }), text);
}

function copyOnSelect() {
  const label = choice("Copy on select", (yes) => setPreference("copy_on_select", yes));
  label.firstChild.checked = preference("copy_on_select", true);
  return label;
}
