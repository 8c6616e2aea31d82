// A form marked data-once is sent once: its buttons are dead until the answer or until the page is shown again. A form
// marked data-confirm asks first.
function disable(form, pressed) {
  pressed?.classList.add("going");
  // Only after the browser has collected the fields: a disabled button's value is not sent.
  setTimeout(() => {
    for (const button of form.querySelectorAll("button")) button.disabled = true;
  });
}

function enable(form) {
  for (const button of form.querySelectorAll("button")) {
    button.disabled = false;
    button.classList.remove("going");
  }
}

document.addEventListener(
  "submit",
  (event) => {
    const form = event.target;
    if (form.dataset.confirm && !confirm(form.dataset.confirm)) {
      event.preventDefault();
      event.stopPropagation();
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

addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll("form[data-once]")) enable(form);
});
