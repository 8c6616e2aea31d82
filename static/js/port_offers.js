// "Port 3000 is open": a card for each port that opens while the page is open, until it is dismissed or the port closes. The
// list comes from the ports menu, which the server keeps up to date. Ports of declared services are no news. While the sandbox
// does not run the list is unknown, and the cards are hidden.
import { announce } from "./announce.js";
import { h, icon } from "./dom.js";
import { changes } from "./port_changes.js";

const most = 3; // offers at once
let known = null;

function place() {
  return document.getElementById("offers") ?? document.body.appendChild(h("div", { id: "offers", class: "offers" }));
}

function offer({ port, process, url, sheetUrl }) {
  const sheet = (choice) => {
    const to = new URL(sheetUrl, location.href);
    to.searchParams.set("choice", choice);
    return to.href;
  };
  const dismiss = h("button", { class: "button bare square low", type: "button", title: "Dismiss", "aria-label": `Dismiss port ${port}` }, icon("close"));
  const text = h("span", { class: "offer-text" }, h("strong", {}, `Port ${port} is open`));
  if (process) text.append(h("span", { class: "quiet mono" }, process));
  const card = h(
    "div", { class: "offer", "data-offer": port }, icon("plug"), text,
    h("a", { class: "button low primary", href: url, target: "_blank", rel: "noopener noreferrer" }, icon("open"), "Open"),
    h("a", { class: "button low", href: sheet("shared"), "data-sheet": "" }, icon("link"), "Share…"),
    h("a", { class: "button low", href: sheet("public"), "data-sheet": "" }, icon("globe"), "Make public…"), dismiss,
  );
  dismiss.addEventListener("click", () => card.remove());
  place().prepend(card);
  for (const old of [...place().children].slice(most)) old.remove();
  announce(`Port ${port} is open`);
}

function look() {
  const menu = document.getElementById("ws-ports");
  place().hidden = menu?.dataset.live === undefined;
  if (place().hidden) return;
  const lines = [...menu.querySelectorAll("[data-port][data-open]:not([data-service])")];
  const { show, hide, known: now } = changes(known, lines.map((line) => line.dataset.port));
  known = now;
  for (const port of hide) document.querySelector(`[data-offer="${port}"]`)?.remove();
  for (const line of lines) if (show.includes(line.dataset.port)) offer(line.dataset);
}

look();
document.addEventListener("sandboxd:parts", look);
