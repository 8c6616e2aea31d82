// The form for a new sandbox: the name becomes one as it is typed, with the address that it leads to; the fields of the size say what the
// chosen template has; Enter creates from any field. Without this module the form works as well, and the server is the judge in any case.

// slug makes a name of a text, as long as it may be. While it is typed it may end with a hyphen, which typing on makes part of it.
export function slug(text, longest, typing = false) {
  const plain = text.normalize("NFKD").replace(/\p{M}+/gu, "").toLowerCase().replace(/ß/g, "ss");
  const name = plain.replace(/[^a-z0-9]+/g, "-").replace(/^[^a-z]+/, "").slice(0, longest);
  return typing ? name : name.replace(/-+$/, "");
}

// retype puts the slug of what was typed in its place, with the caret where it was.
export function retype(input, typing) {
  const longest = Number(input.dataset.slug);
  const next = slug(input.value, longest, typing);
  if (next === input.value) return;
  const caret = slug(input.value.slice(0, input.selectionStart), longest, true).length;
  input.value = next;
  if (typing) input.setSelectionRange(Math.min(caret, next.length), Math.min(caret, next.length));
}

function tellAddress(input) {
  const hint = document.getElementById(`${input.id}-hint`);
  const name = slug(input.value, Number(input.dataset.slug));
  hint.querySelector("[data-named]").hidden = !name;
  hint.querySelector("[data-unnamed]").hidden = Boolean(name);
  const address = hint.querySelector("[data-address]");
  address.textContent = address.dataset.address.replace("{name}", name);
}

function named(event, typing) {
  const input = event.target;
  if (!input.matches?.("input[data-slug]") || event.isComposing) return;
  retype(input, typing);
  tellAddress(input);
}

// tellSize shows the chosen template's size in the fields that are empty.
function tellSize(choice) {
  for (const name of ["cpus", "memory", "pids", "disk"]) {
    const field = choice.form.elements[name];
    if (field) field.placeholder = choice.dataset[name];
  }
}

// enter sends the form for Enter in a list, and for Ctrl+Enter in a text of several lines: other fields do it by themselves.
function enter(event) {
  const field = event.target;
  if (event.key !== "Enter" || event.isComposing || !field.form?.querySelector("input[data-slug]")) return;
  if (!field.matches("select") && !(field.matches("textarea") && (event.ctrlKey || event.metaKey))) return;
  event.preventDefault();
  field.form.requestSubmit();
}

if (globalThis.document?.addEventListener) {
  document.addEventListener("input", (event) => named(event, true));
  document.addEventListener("compositionend", (event) => named({ target: event.target }, true));
  document.addEventListener("keydown", enter);
  document.addEventListener("change", (event) => {
    named(event, false);
    if (event.target.matches?.('.template-choice input')) tellSize(event.target);
  });
  document.addEventListener("submit", (event) => {
    const input = event.target.querySelector?.("input[data-slug]");
    if (input) retype(input, false);
  }, true);
}
