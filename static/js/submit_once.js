// Forms with data-once are sent once, also by a double click: their buttons are disabled until the response, or until the page is
// shown again. Forms with data-confirm ask first. A button with data-needs is disabled while its form has no element that matches
// this selector.
const sent = new WeakSet();

const lacks = (button) => button.dataset.needs !== undefined && !button.form?.querySelector(button.dataset.needs);

function checkNeeds(root) {
  for (const button of root.querySelectorAll("button[data-needs]")) button.disabled = lacks(button);
}

function disable(form, pressed) {
  sent.add(form);
  pressed?.classList.add("going");
  // After the browser has collected the fields: the value of a disabled button is not sent.
  setTimeout(() => {
    for (const button of form.querySelectorAll("button")) button.disabled = true;
  });
}

function enable(form) {
  sent.delete(form);
  for (const button of form.querySelectorAll("button")) {
    button.disabled = lacks(button);
    button.classList.remove("going");
  }
}

document.addEventListener(
  "submit",
  (event) => {
    const form = event.target;
    if (sent.has(form)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    if (form.dataset.confirm) {
      event.preventDefault();
      event.stopPropagation();
      import("./confirm_form.js").then((m) => m.ask(form, event.submitter)).catch(() => location.reload()); // it is not there after an update
      return;
    }
    if (form.dataset.once !== undefined) disable(form, event.submitter);
  },
  true,
);

document.addEventListener("htmx:afterRequest", (event) => {
  const form = event.target.closest?.("form[data-once]");
  if (form && !event.detail.xhr?.getResponseHeader("HX-Redirect")) enable(form);
});

document.addEventListener("change", (event) => {
  if (event.target.form) checkNeeds(event.target.form);
});

checkNeeds(document);
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll("form[data-once]")) enable(form);
});
