// Unsaved work for a file that can no longer be edited here, because it has become large, binary or read-only. The user can
// view it, copy it, or save it under another name.
import * as dialogs from "../files/dialog.js";
import { Problem, problemOf } from "../files/api.js";
import { copy } from "../js/clipboard.js";
import { h } from "../js/dom.js";
import { decodeText, encodePath } from "../files/paths.js";
import { shortTime } from "../files/format.js";
import { write } from "./text.js";

const plain = { bom: false, eol: "\n", encoding: "UTF-8" };

// howOf returns the format to save a draft in. Files that were not UTF-8 become UTF-8.
export function howOf(draft) {
  return draft.how?.encoding === "UTF-8" ? draft.how : plain;
}

// showWork shows unsaved work in a dialog, to be read and copied.
export function showWork(text, ask = dialogs.ask) {
  return ask({
    title: "Your unsaved work", wide: true, buttons: [{ value: "", text: "Close", kind: "primary", usual: true }],
    body: h("textarea", { class: "input left-text", rows: "18", readonly: true, "aria-label": "Your unsaved work" }, text),
  });
}

// draftNote returns the note about a draft. tab: {path, owner, note(id, note)}.
export function draftNote(tab, draft, { ask, confirm, tell } = dialogs) {
  const { owner } = tab;
  const done = () => {
    tab.note("left", null);
    return owner.drafts.drop(tab.path);
  };
  const saveAs = async () => {
    const input = h("input", { class: "input", value: `${decodeText(tab.path)}.mine`, "aria-label": "Path", spellcheck: "false" });
    if ((await ask({ title: "Save your work as", body: input, buttons: [{ value: "", text: "Cancel" }, { value: "save", text: "Save", kind: "primary", usual: true }] })) !== "save") return;
    const path = encodePath(input.value, owner.home);
    try {
      if (path === tab.path) throw new Problem(409, "same", "This file is read-only.");
      await owner.files.write(path, write(draft.text, howOf(draft)), { fresh: true, parents: true });
    } catch (err) {
      const problem = problemOf(err);
      return tell("Not saved", problem.status === 412 ? "A file with this name already exists." : problem.message);
    }
    await done();
    await owner.open(path);
  };
  return {
    tone: "busy", icon: "warn", text: `You have unsaved work (${shortTime(new Date(draft.at).toISOString())}). It cannot be applied to this file.`,
    acts: [
      { text: "Show", act: () => showWork(draft.text, ask) },
      { text: "Copy", act: () => copy(draft.text) },
      { text: "Save as…", act: saveAs },
      { text: "Discard", act: async () => (await confirm({ title: "Discard your unsaved work?", text: "This cannot be undone.", act: "Discard" })) && done() },
    ],
  };
}
