// Icons that only the chat uses, drawn like those in the page (views/icons.go).
import { addShapes } from "../js/dom.js";

export function addIcons() {
  addShapes({
    send: `<path d="M8 13V3.5M3.75 7.5 8 3.25l4.25 4.25"/>`,
    clip: `<path d="m12.5 7.5-4.6 4.6a2.7 2.7 0 0 1-3.8-3.8l5-5a1.8 1.8 0 0 1 2.6 2.6l-4.8 4.8a.9.9 0 0 1-1.3-1.3l4.2-4.2"/>`,
    ask: `<circle cx="8" cy="8" r="5.75"/><path d="M6.4 6.3a1.65 1.65 0 1 1 2.5 1.5c-.6.35-.9.7-.9 1.3m0 2.1h0"/>`,
    bell: `<path d="M4 11V7a4 4 0 0 1 8 0v4l1 1.25H3zm2.75 1.5a1.3 1.3 0 0 0 2.5 0"/>`,
    branch: `<circle cx="4.5" cy="3.75" r="1.5"/><circle cx="4.5" cy="12.25" r="1.5"/><circle cx="11.5" cy="5.75" r="1.5"/><path d="M4.5 5.25v5.5m7-3.5c0 2.5-3 2.25-5.5 3"/>`,
  });
}
