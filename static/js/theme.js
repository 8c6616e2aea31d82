// Switches the theme at once. The form sets a cookie, so that the server renders the next page in it.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.dataset.themeForm === undefined || !event.submitter?.value) return;
  event.preventDefault();
  const theme = event.submitter.value;
  document.documentElement.dataset.theme = theme;
  for (const button of document.querySelectorAll("[data-theme-form] button")) {
    button.setAttribute("aria-pressed", String(button.value === theme));
  }
  document.dispatchEvent(new CustomEvent("themechange", { detail: theme }));
  fetch(form.action, { method: "POST", body: new URLSearchParams({ theme, next: "/" }), redirect: "manual" });
});
