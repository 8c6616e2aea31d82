// announce makes screen readers read a text.
export function announce(text) {
  const region = document.getElementById("announce");
  if (region) region.textContent = text;
}
