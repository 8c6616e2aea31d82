// Renames a tab in place, in an input. Enter and leaving it save, Escape cancels.
import { h } from "./dom.js";

const longest = 40; // as in web/tab_names.go

export function renameIn(tab, name, usual, done) {
  if (tab.querySelector("input")) return;
  const input = h("input", {
    class: "tab-name", type: "text", maxlength: String(longest), placeholder: usual, "aria-label": `Name of ${usual}`, spellcheck: "false",
  });
  input.value = name;
  let over = false;
  const end = (keep) => {
    if (over) return;
    over = true;
    input.remove();
    tab.classList.remove("renaming");
    tab.querySelector("button")?.focus();
    const next = input.value.trim();
    if (keep && next !== name) done(next);
  };
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Enter") end(true);
    if (event.key === "Escape") end(false);
  });
  input.addEventListener("blur", () => end(true));
  tab.classList.add("renaming");
  tab.prepend(input);
  input.focus();
  input.select();
}
