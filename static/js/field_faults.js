// Takes away what is said to be wrong with a field when the field is changed: it is about the old value.

// mend clears a field of its messages. A place for messages that a script fills (archive_upload.js) stays.
export function mend(field, find) {
  field.removeAttribute("aria-invalid");
  for (const id of (field.getAttribute("aria-describedby") ?? "").split(" ")) {
    const fault = id.endsWith("-fault") && find(id);
    if (!fault) continue;
    if (fault.dataset.fault === undefined) fault.remove();
    else fault.hidden = true;
  }
}

globalThis.document?.addEventListener?.("input", ({ target }) => {
  if (target.getAttribute?.("aria-invalid") === "true") mend(target, (id) => document.getElementById(id));
});
