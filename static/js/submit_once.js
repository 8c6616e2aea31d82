// Forms with data-once are sent once: their buttons are disabled until the response, or until the page is shown again. Forms
// with data-confirm ask first.
function disable(form, pressed) {
  pressed?.classList.add("going");
  // After the browser has collected the fields: the value of a disabled button is not sent.
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
