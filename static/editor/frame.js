// Rendered content from a sandbox is shown in a frame without scripts, loads or an origin.
import DOMPurify from "dompurify";
import { h } from "../js/dom.js";

const policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'";
const tokens = ["ink", "ink-2", "ink-3", "line", "line-strong", "sunken", "surface", "accent", "bad", "terminal-bg", "mono", "sans", "r1", "r2"];

// Removes scripts, loads, anything that looks like our page, and anything that changes the look of the frame.
const purify = {
  USE_PROFILES: { html: true }, RETURN_DOM_FRAGMENT: true, ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, SANITIZE_NAMED_PROPS: true,
  FORBID_TAGS: ["style", "form", "input", "button", "textarea", "select", "option", "audio", "video", "source", "track", "picture", "map", "area", "dialog", "marquee", "template", "slot", "center", "font"],
  FORBID_ATTR: ["style", "srcset", "ping", "target", "background", "poster", "name", "class", "autofocus", "tabindex", "accesskey", "contenteditable", "draggable", "popover", "popovertarget"],
};

// clean sanitizes HTML to a fragment.
export function clean(html) {
  return DOMPurify.sanitize(html, purify);
}

const sheet = `
  html { background: var(--terminal-bg); color: var(--ink); font: 15px/1.65 var(--sans); overflow-wrap: break-word; }
  body { max-width: 48rem; margin: 0 auto; padding: 1.5rem 1.5rem 4rem; }
  h1, h2, h3, h4, h5, h6 { line-height: 1.3; margin: 1.6em 0 0.6em; font-weight: 600; }
  h1 { font-size: 1.7em; } h2 { font-size: 1.35em; } h1, h2 { padding-bottom: 0.25em; border-bottom: 1px solid var(--line); }
  h3 { font-size: 1.12em; } h4, h5, h6 { font-size: 1em; }
  body > :first-child { margin-top: 0; }
  p, ul, ol, blockquote, pre, table, dl { margin: 0 0 1em; }
  ul, ol { padding-left: 1.6em; } li + li { margin-top: 0.2em; }
  a { color: inherit; } a[href], .link { color: var(--accent); text-decoration: none; } .link { border-bottom: 1px dotted; }
  code, pre, samp { font: 0.875em/1.55 var(--mono); }
  code { padding: 0.1em 0.35em; border-radius: var(--r1); background: var(--sunken); }
  pre { padding: 0.75rem 1rem; border-radius: var(--r2); background: var(--sunken); overflow: auto; } pre code { padding: 0; background: none; font-size: 1em; }
  blockquote { padding-left: 1em; border-left: 3px solid var(--line-strong); color: var(--ink-2); }
  table { display: block; overflow: auto; border-collapse: collapse; } th, td { padding: 0.35em 0.75em; border: 1px solid var(--line); text-align: left; } th { background: var(--sunken); }
  img { max-width: 100%; height: auto; } hr { border: 0; border-top: 1px solid var(--line); margin: 1.5em 0; }
  .absent { display: inline-block; padding: 0.1em 0.5em; border: 1px dashed var(--line-strong); border-radius: var(--r1); color: var(--ink-3); font-size: 0.9em; }
  .cell { display: grid; grid-template-columns: 3.5rem minmax(0, 1fr); gap: 0 0.75rem; margin: 0 0 1rem; } .cell > .count { color: var(--ink-3); font: 0.75rem/1.8 var(--mono); text-align: right; padding-top: 0.7rem; }
  .cell pre { margin: 0; } .output { grid-column: 2; padding-top: 0.5rem; overflow: auto; } .output pre { background: none; padding: 0.25rem 0; } .output .error { color: var(--bad); }
  .prose { grid-column: 1 / -1; } .prose > :first-child { margin-top: 0; }
  .notebook { max-width: 60rem; }
  @media (max-width: 36rem) { body { padding: 1rem 1rem 3rem; } .cell { grid-template-columns: minmax(0, 1fr); } .cell > .count { text-align: left; padding: 0; } .output { grid-column: 1; } }
`;

// page returns the frame's document around a fragment.
function page(fragment, className) {
  const style = getComputedStyle(document.documentElement);
  const values = tokens.map((t) => `--${t}: ${style.getPropertyValue(`--${t}`)};`).join("");
  const theme = document.documentElement.dataset.theme;
  const scheme = theme === "light" || theme === "dark" ? theme : "light dark";
  const body = h("body", { class: className });
  body.append(fragment.cloneNode(true));
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="${policy}">` +
    `<meta name="referrer" content="no-referrer"><style>:root { color-scheme: ${scheme}; ${values} }${sheet}</style></head>${body.outerHTML}</html>`;
}

// frame shows a fragment and follows the page's theme.
export function frame(fragment, { title, className = "" }) {
  const element = h("iframe", { class: "preview-frame", sandbox: "", title, referrerpolicy: "no-referrer", tabindex: "0", srcdoc: page(fragment, className) });
  const follow = () => {
    if (!element.isConnected) return document.removeEventListener("themechange", follow);
    element.srcdoc = page(fragment, className);
  };
  document.addEventListener("themechange", follow);
  return element;
}
