// Puts the browser's time zone into the forms that ask for one, and offers all zones that it knows.
function fill() {
  for (const list of document.querySelectorAll("[data-zones]:empty")) {
    list.append(...["UTC", ...Intl.supportedValuesOf("timeZone")].map((zone) => new Option(zone)));
  }
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
for (const kind of ["htmx:load", "sandboxd:parts"]) document.addEventListener(kind, fill);
