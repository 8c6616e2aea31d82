// Copy buttons. data-copy is the id of an input, data-copy-text is the text itself. They are hidden until this script runs.
import { copy } from "./clipboard.js";

for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-copy], [data-copy-text]");
  if (button) press(button);
});

// A secret that is shown only once is copied as soon as it appears.
document.addEventListener("htmx:afterSwap", () => {
  const button = document.querySelector("[data-copy-now]");
  if (!button) return;
  button.removeAttribute("data-copy-now");
  press(button);
});

async function press(button) {
  const input = document.getElementById(button.dataset.copy);
  await copy(input?.value ?? button.dataset.copyText);
  input?.select();
  const label = button.querySelector("span");
  if (label.textContent === "Copied") return;
  const before = label.textContent;
  label.textContent = "Copied";
  setTimeout(() => (label.textContent = before), 2000);
}
