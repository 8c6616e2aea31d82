// The whole page of a sandbox's own host where its image has no ttyd: one terminal that fills the window. The page has
// <div id="terminal" data-socket="/ws" data-sandbox="NAME" data-tab="main"> (internal/proxy), this script and its
// style sheet.
import { socketURL } from "../js/reconnect.js";
import { cleanTitle } from "../js/tabs.js";
import { mount } from "./terminal.js";
import "../css/late.css";
import "./page.css";

const element = document.getElementById("terminal");
const { socket, sandbox, tab } = element.dataset;
element.className = "terminal-page";
const terminal = mount(element, {
  url: socketURL(socket || "/ws").href,
  tab,
  label: `Terminal of ${sandbox}`,
  onTitle: (title) => {
    const line = cleanTitle(title, 120);
    document.title = line ? `${line} · ${sandbox}` : sandbox;
  },
});
document.getElementById("late")?.remove();
terminal.focus();
