// The properties dialog: facts about a file, and its permissions.
import { problemOf } from "./api.js";
import { h, icon } from "../js/dom.js";
import { closeButton, modal } from "./dialog.js";
import { nameElement, plainName, textElement } from "./names.js";
import { decodeText, parentOf } from "./paths.js";
import { kindName, octal, permissions, size, fullTime } from "./format.js";

const people = ["Owner", "Group", "Others"];
const bits = [["Read", 4], ["Write", 2], ["Run", 1]];

// properties shows the dialog, and resolves to whether the permissions were changed.
export function properties(files, node) {
  const { entry, path } = node;
  const before = parseInt(entry.mode, 8) || 0;
  let mode = before;
  const field = h("input", { class: "input mono", type: "text", value: octal(mode), maxlength: "4", pattern: "[0-7]{3,4}", inputmode: "numeric", "aria-label": "Permissions as a number", spellcheck: "false" });
  const letters = h("code", { class: "quiet" }, permissions(octal(mode)));
  const fault = h("p", { class: "fault", role: "alert", hidden: true });
  const boxes = people.map((_, who) => bits.map(([, bit]) => h("input", { type: "checkbox", change: () => set(mode ^ (bit << ((2 - who) * 3))) })));
  const set = (n, typed = false) => {
    mode = n;
    if (!typed) field.value = octal(mode);
    letters.textContent = permissions(octal(mode));
    boxes.forEach((row, who) => row.forEach((box, i) => (box.checked = Boolean(mode & (bits[i][1] << ((2 - who) * 3))))));
    save.disabled = mode === before;
  };
  field.addEventListener("input", () => /^[0-7]{3,4}$/.test(field.value) && set(parseInt(field.value, 8), true));
  const table = h("table", { class: "permissions" },
    h("thead", {}, h("tr", {}, h("th", {}), bits.map(([text]) => h("th", { scope: "col" }, entry.type === "folder" && text === "Run" ? "Enter" : text)))),
    h("tbody", {}, people.map((who, i) => h("tr", {}, h("th", { scope: "row" }, who), boxes[i].map((box, j) => h("td", {}, h("label", {}, h("span", { class: "visually-hidden" }, `${who}: ${bits[j][0]}`), box)))))));
  const save = h("button", { class: "button primary", value: "save" }, "Save permissions");
  const changeable = entry.type === "file" || entry.type === "folder";
  return show({ files, path, entry, facts: facts(entry, path), rest: changeable ? [h("div", { class: "rights-line" }, h("h3", {}, "Permissions"), letters, field), table, fault] : [], save: changeable && save, set: () => set(before), mode: () => mode, fault });
}

function facts(entry, path) {
  const rows = [
    ["Kind", kindName(entry)],
    ["Where", textElement(decodeText(parentOf(path)))],
    entry.type === "file" && ["Size", `${size(entry.size)}${entry.size >= 1000 ? ` (${entry.size.toLocaleString("en")} bytes)` : ""}`],
    entry.type === "link" && ["Target", textElement(entry.target ?? "")],
    ["Modified", fullTime(entry.modified)],
    ["Owner", `${entry.owner}, group ${entry.group}`],
  ];
  return h("dl", { class: "props" }, rows.filter(Boolean).flatMap(([term, value]) => [h("dt", {}, term), h("dd", {}, value)]));
}

async function show({ files, path, entry, facts, rest, save, set, mode, fault }) {
  let changed = false;
  const cancel = h("button", { type: "button", class: "button", click: () => form.closest("dialog").close() }, save ? "Cancel" : "Close");
  const form = h("form", { class: "sheet" },
    h("div", { class: "sheet-head" }, h("h2", { id: "props-title" }, nameElement(entry.key)), closeButton()),
    facts, rest, h("div", { class: "buttons end" }, cancel, save));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    save.disabled = true;
    try {
      await files.chmod(path, octal(mode()));
      changed = true;
      form.closest("dialog").close();
    } catch (err) {
      fault.replaceChildren(icon("warn"), `${plainName(entry.key)}: ${problemOf(err).message}`);
      fault.hidden = false;
      save.disabled = false;
    }
  });
  if (save) set();
  await modal("props-title", form, "props-dialog");
  return changed;
}
