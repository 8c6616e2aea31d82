// Opens a port in a new tab. Without scripts the form loads a page with a link.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.portPattern) return;
  event.preventDefault();
  const input = form.elements.port;
  const port = Number(input.value);
  const fits = Number.isInteger(port) && port > 0 && port < 65536;
  input.setCustomValidity(fits ? "" : "A port is a number from 1 to 65535.");
  if (!input.reportValidity()) return;
  window.open(form.dataset.portPattern.replace("{port}", port), "_blank", "noopener,noreferrer");
  form.closest("details").open = false;
});

document.addEventListener("input", (event) => {
  if (event.target.id === "port") event.target.setCustomValidity("");
});
