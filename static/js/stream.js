// Says when the page's stream is cut for longer than a moment, and marks rows that are new.
import htmx from "./htmx.js";

const patience = 3000; // ms; shorter cuts are not worth a word
let timer = 0;

function show(cut) {
  const note = document.getElementById("offline");
  if (note) note.hidden = !cut;
}

htmx.on("htmx:sseError", () => {
  timer ||= setTimeout(() => show(true), patience);
});

htmx.on("htmx:sseOpen", () => {
  clearTimeout(timer);
  timer = 0;
  show(false);
});

htmx.on("htmx:oobAfterSwap", (event) => {
  if (event.detail.target?.id !== "rows") return;
  event.detail.target.firstElementChild?.classList.add("fresh");
});
