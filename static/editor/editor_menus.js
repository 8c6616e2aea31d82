// The menus of the editor: for an open file, and the links of a rendered one.
import { copy } from "../js/clipboard.js";
import { keyName } from "../js/dom.js";
import { lineOf } from "../files/names.js";
import { decodeText } from "../files/paths.js";
import { linkOf } from "./links.js";

const shownLinks = 60;
const longest = 60; // characters of a link text

export function tabItems(editor, tab) {
  if (!tab) return [];
  const text = tab.code && tab.mode === "source";
  return [
    ...(text ? [
      { icon: "find", text: tab.readOnly ? "Find" : "Find and replace", key: keyName("F"), act: () => tab.code.find() },
      { icon: "right", text: "Go to line…", act: () => tab.code.askLine() },
      { text: "Wrap long lines", checked: editor.wrap, act: () => editor.setWrap(!editor.wrap) },
      null,
    ] : []),
    { icon: "download", text: "Download", act: () => editor.download(tab) },
    { icon: "folder", text: "Show in tree", act: () => editor.reveal(tab.path) },
    { icon: "copy", text: "Copy path", act: () => copy(decodeText(tab.path)) },
    null,
    { icon: "close", text: "Close", act: () => editor.close(tab) },
    { icon: "close", text: "Close others", off: editor.tabs.length < 2, act: () => editor.closeOthers(tab) },
  ];
}

// linkItems lists the links of a rendered document, because its frame cannot navigate. The text of a link cannot affect how
// its host is displayed.
export function linkItems(editor, tab) {
  return (tab?.view?.links ?? []).slice(0, shownLinks).map(({ text, href }) => {
    const to = linkOf(href, tab.path);
    const start = [...text.slice(0, 4 * longest)];
    const label = lineOf(start.length > longest ? `${start.slice(0, longest - 1).join("")}…` : start.join(""));
    if (to?.path) return { icon: "text", text: label, act: () => editor.open(to.path) };
    return { icon: "open", text: label, where: to && hostOf(to.url), off: !to, act: () => window.open(to.url, "_blank", "noopener,noreferrer") };
  });
}

function hostOf(url) {
  return new URL(url).host || url;
}
