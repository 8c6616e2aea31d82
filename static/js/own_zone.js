// Puts the browser's time zone into the form of a new schedule.
function fill() {
  for (const field of document.querySelectorAll("[data-own-zone=true]")) {
    const input = field.querySelector("input");
    const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
    delete field.dataset.ownZone;
    if (!zone || !input || input.value === zone) continue;
    input.value = zone;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

fill();
document.addEventListener("htmx:load", fill);
