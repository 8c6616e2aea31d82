// Copy buttons: hidden until it is known that they work.
for (const button of document.querySelectorAll("[data-copy]")) button.hidden = false;

document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  const input = document.getElementById(button.dataset.copy);
  input.select();
  try {
    await navigator.clipboard.writeText(input.value);
  } catch {
    document.execCommand("copy"); // plain HTTP on a host that is not localhost has no clipboard
  }
  const word = button.querySelector("span");
  const before = word.textContent;
  word.textContent = "Copied";
  setTimeout(() => (word.textContent = before), 2000);
});
