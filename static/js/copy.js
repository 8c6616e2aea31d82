// Copy buttons: hidden until it is known that they work. data-copy names an input, data-copy-text holds a text.
import { copy } from "../terminal/clipboard.js";

for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;

document.addEventListener("click", (event) => {
  const button = event.target.closest?.("[data-copy], [data-copy-text]");
  if (button) press(button);
});

// What has just been made and is shown this once is copied at once; the button says so.
document.addEventListener("htmx:afterSwap", () => {
  const button = document.querySelector("[data-copy-now]");
  if (!button) return;
  button.removeAttribute("data-copy-now");
  press(button);
});

async function press(button) {
  const input = document.getElementById(button.dataset.copy);
  input?.select();
  try {
    await navigator.clipboard.writeText(input?.value ?? button.dataset.copyText);
  } catch {
    if (input) document.execCommand("copy"); // plain HTTP on a host that is not localhost has no clipboard
    else await copy(button.dataset.copyText);
  }
  const word = button.querySelector("span");
  if (word.textContent === "Copied") return;
  const before = word.textContent;
  word.textContent = "Copied";
  setTimeout(() => (word.textContent = before), 2000);
}
