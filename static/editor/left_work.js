// Unsaved work of a sandbox that was deleted, in another window say. The message about that lists it, to be copied or downloaded.
import { baseOf, decodeText } from "../files/paths.js";
import { plainName } from "../files/names.js";
import { count } from "../files/format.js";
import { announce } from "../js/announce.js";
import { copy } from "../js/clipboard.js";
import { download, h, icon } from "../js/dom.js";
import { showWork } from "./draft_note.js";

let work = null; // a promise of [{path, text, taken}], from the moment that the sandbox is deleted
let all = [];

function save({ path, text }) {
  const url = URL.createObjectURL(new Blob([text]));
  download(url, decodeText(baseOf(path)));
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser reads it by itself
}

// listOf returns the list of unsaved work. Tests pass other ways out.
export function listOf(work, { copied = copy, saved = save, show = showWork } = {}) {
  const act = (item, name, text, press) => h("button", { class: "button low", type: "button", "aria-label": `${text} ${plainName(baseOf(item.path))}`, click: press }, icon(name), text);
  const copyWork = async (item, button) => {
    if (!(await copied(item.text))) return announce("The browser does not allow copying. Download the file.");
    item.taken = true;
    button.lastChild.data = "Copied";
    announce("Copied");
  };
  return h("div", { class: "left-work" },
    h("p", {}, `Unsaved work in ${count(work.length, "file")} is left in this window alone. Copy or download what you need.`),
    h("ul", {}, work.map((item) => h("li", {},
      h("button", { class: "link clip mono", type: "button", title: decodeText(item.path), click: () => show(item.text) }, plainName(baseOf(item.path))),
      act(item, "copy", "Copy", (event) => copyWork(item, event.currentTarget)),
      act(item, "download", "Download", () => {
        item.taken = true;
        saved(item);
      })))));
}

function show() {
  const panel = document.querySelector("#ws-still[data-deleted] > .panel");
  if (all.length && panel && !panel.querySelector(".left-work")) panel.querySelector(".buttons").before(listOf(all));
}

document.addEventListener("htmx:partialBeforeSwap", (event) => {
  if (!event.detail.fragment.querySelector?.("#ws-still[data-deleted]")) return;
  const editor = document.querySelector("sandbox-editor"); // it is removed next
  if (editor?.unsaved) work ??= editor.unsaved().then((list) => (all = list));
  work?.then(show); // also when the message is drawn again
});

addEventListener("beforeunload", (event) => all.some((item) => !item.taken) && event.preventDefault());
