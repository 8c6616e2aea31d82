// Shows failed htmx requests as toasts. Fragments are swapped in as usual; of a whole error page only the message is shown.
import { toast } from "./toast.js";

const error = (text) => toast(text, { bad: true });

document.addEventListener("htmx:beforeSwap", (event) => {
  const { xhr } = event.detail;
  if (xhr.status < 400 || !/^\s*<!doctype/i.test(xhr.responseText)) return;
  event.detail.shouldSwap = false;
  const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
  error(page.querySelector("[data-problem]")?.dataset.problem || `The server responded with status ${xhr.status}.`);
});

document.addEventListener("htmx:sendError", () => error("The server does not respond. Is sandboxd running?"));
document.addEventListener("htmx:timeout", () => error("The server took too long to respond."));
