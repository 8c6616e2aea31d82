// Reads state changes aloud. Rows come as parts of the page; what their state was before only the page knows.
const said = new Map();

export function announce(text) {
  const place = document.getElementById("announce");
  if (place) place.textContent = text;
}

function note(root) {
  for (const state of root.querySelectorAll?.("[data-name] .state-word") ?? []) {
    const name = state.closest("[data-name]").dataset.name;
    const now = state.textContent.trim();
    const before = said.get(name);
    said.set(name, now);
    if (before && before !== now) announce(`${name}: ${now}`);
  }
  const word = document.querySelector("#ws-state .state-word")?.textContent.trim();
  if (word && said.get("") && said.get("") !== word) announce(word);
  if (word) said.set("", word);
}

note(document);
document.addEventListener("sandboxd:parts", () => note(document));
