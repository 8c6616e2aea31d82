// The whole page of a sandbox's own host where its image has no ttyd: one terminal that fills the window. The page
// needs nothing but this script and its style sheet; <html data-url> may name another websocket than /ws.
import { mount } from "./terminal.js";
import "./page.css";

const url = new URL(document.documentElement.dataset.url ?? "/ws", location.href);
url.protocol = url.protocol.replace("http", "ws");
const element = document.createElement("main");
element.className = "terminal-page";
document.body.append(element);
const name = document.title || location.hostname;
const terminal = mount(element, {
  url: url.href,
  label: "Terminal",
  onTitle: (title) => {
    document.title = title ? `${title.slice(0, 120)} · ${name}` : name;
  },
});
terminal.focus();
