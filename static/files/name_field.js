// The field for a name in the tree, with what is wrong with the name below it.
import { h, icon } from "../js/dom.js";

let last = 0;

// nameField returns the field. fault gives what is wrong with a name, or "". end is called once: with the name, or with "" when
// it was cancelled, and whether that was by the keyboard.
export function nameField(value, fault, end) {
  const id = `name-fault-${++last}`;
  const input = h("input", { class: "name-field", type: "text", value, spellcheck: "false", autocapitalize: "off", autocomplete: "off", "aria-label": "Name" });
  const told = h("p", { class: "fault name-fault", id, role: "alert" });
  const element = h("span", { class: "name-edit" }, input, told);
  told.hidden = true;
  let over = false;
  const finish = (name, byKey) => {
    if (over) return;
    over = true;
    end(name, byKey);
  };
  const tell = (problem) => {
    told.hidden = !problem;
    told.replaceChildren(...(problem ? [icon("warn"), problem] : []));
    for (const [name, to] of [["aria-invalid", "true"], ["aria-describedby", id]]) problem ? input.setAttribute(name, to) : input.removeAttribute(name);
    element.classList.toggle("above", Boolean(problem) && lacksRoom(told));
  };
  input.addEventListener("keydown", (event) => {
    event.stopPropagation();
    if (event.key === "Escape") return finish("", true);
    if (event.key !== "Enter" || event.isComposing) return;
    const problem = input.value === value ? "" : fault(input.value);
    if (problem) tell(problem);
    else finish(input.value, true);
  });
  input.addEventListener("input", () => tell(""));
  input.addEventListener("blur", () => setTimeout(() => document.activeElement !== input && finish(fault(input.value) ? "" : input.value, false)));
  for (const kind of ["pointerdown", "dblclick", "click"]) input.addEventListener(kind, (event) => event.stopPropagation());
  return { element, input, cancel: () => finish("", false) };
}

// lacksRoom says whether a message is cut by the end of the tree.
function lacksRoom(told) {
  const tree = told.closest?.(".tree");
  return Boolean(tree) && told.getBoundingClientRect().bottom > tree.getBoundingClientRect().bottom;
}
