// The page of a sandbox's own host when its image has no ttyd: one terminal that fills the window. internal/proxy renders
// <div id="terminal" data-socket="/ws" data-sandbox="NAME" data-tab="main">.
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
