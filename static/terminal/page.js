// The page of a sandbox's own host: one terminal that fills the window. internal/proxy renders
// <div id="terminal" data-socket="/ws" data-text="/text" data-sandbox="NAME" data-box="ID" data-tab="main">.
import { socketURL } from "../js/reconnect.js";
import { scrollbackOf } from "./scrollback_text.js";
import { cleanTitle } from "../js/tabs.js";
import { mount } from "./terminal.js";
import "../css/late.css";
import "./page.css";

const element = document.getElementById("terminal");
const { socket, text, sandbox, box, tab } = element.dataset;
element.className = "terminal-page";
const terminal = mount(element, {
  url: socketURL(socket || "/ws").href,
  tab,
  label: `Terminal of ${sandbox}`,
  sandbox: { id: box, name: sandbox },
  history: (part) => scrollbackOf(text, part),
  onTitle: (title) => {
    const line = cleanTitle(title, 120);
    document.title = `${line || "Terminal"} · ${sandbox}`;
  },
});
document.getElementById("late")?.remove();
terminal.focus();
