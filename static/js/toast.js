// Errors of requests that htmx makes. An answer that is a part of this page is swapped in; a whole error page is not:
// what it says is shown for a while instead.
const shown = 8000; // ms
let timer = 0;

export function toast(text) {
  const place = document.getElementById("toast");
  if (!place) return;
  place.textContent = text;
  place.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(() => (place.hidden = true), shown);
}

document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr } = event.detail;
  if (xhr.status < 400 || !/^\s*<!doctype/i.test(xhr.responseText)) return;
  event.detail.shouldSwap = false;
  const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
  toast(page.querySelector("[data-problem]")?.dataset.problem || `The server answered ${xhr.status}.`);
});

document.addEventListener("htmx:sendError", () => toast("sandboxd does not answer. Is it running?"));
document.addEventListener("htmx:timeout", () => toast("sandboxd took too long to answer."));
