// Errors of requests that htmx makes. An answer that is a part of this page is swapped in; a whole error page is not:
// what it says is shown for a while instead.
const least = 8000; // ms
const reading = 90; // ms for a character
let timer = 0;

// patience is how long a text is shown, in ms: as long as reading it takes.
export function patience(text) {
  return Math.max(least, text.length * reading);
}

export function toast(text) {
  const place = document.getElementById("toast");
  if (!place) return;
  place.textContent = text;
  place.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(() => (place.hidden = true), patience(text));
}

globalThis.document?.addEventListener("click", (event) => {
  const place = event.target.closest?.("#toast");
  if (place) place.hidden = true;
});

globalThis.document?.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr } = event.detail;
  if (xhr.status < 400 || !/^\s*<!doctype/i.test(xhr.responseText)) return;
  event.detail.shouldSwap = false;
  const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
  toast(page.querySelector("[data-problem]")?.dataset.problem || `The server answered ${xhr.status}.`);
});

globalThis.document?.addEventListener("htmx:sendError", () => toast("sandboxd does not answer. Is it running?"));
globalThis.document?.addEventListener("htmx:timeout", () => toast("sandboxd took too long to answer."));
