// Two versions of a file side by side, or unified in a narrow pane: theirs, from the disk, and mine, which is editable.
import { history, defaultKeymap, historyKeymap } from "@codemirror/commands";
import { MergeView, unifiedMergeView } from "@codemirror/merge";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap, lineNumbers } from "@codemirror/view";
import { theme } from "./code.js";

const least = 560; // px; the minimum width for side by side

// control is a button of a change. Accepting it keeps mine.
function control(type, act) {
  const button = document.createElement("button");
  Object.assign(button, { type: "button", name: type, textContent: type === "accept" ? "Mine" : "Theirs", onmousedown: act });
  button.addEventListener("click", (event) => event.detail === 0 && act(event)); // pressed by keyboard
  return button;
}

export class Compare {
  // changed() is called after each change of mine; at is the cursor position.
  constructor({ parent, theirs, mine, eol, at = 0, changed }) {
    const shared = [lineNumbers(), theme, eol === "mixed" ? EditorState.lineSeparator.of("\n") : [], EditorView.lineWrapping];
    const label = (text) => EditorView.contentAttributes.of({ "aria-label": text, tabindex: "0" });
    const writing = [history(), keymap.of([...defaultKeymap, ...historyKeymap]), label("Your version"), EditorView.updateListener.of((update) => update.docChanged && changed())];
    const selection = { anchor: Math.min(at, mine.length) };
    const folded = { margin: 3, minSize: 6 };
    this.beside = parent.clientWidth >= least;
    if (this.beside) {
      this.merge = new MergeView({
        parent, a: { doc: theirs, extensions: [shared, EditorState.readOnly.of(true), label("Version on disk")] }, b: { doc: mine, selection, extensions: [shared, writing] },
        revertControls: "a-to-b", collapseUnchanged: folded, gutter: true,
        renderRevertControl: () => Object.assign(document.createElement("button"), { type: "button", className: "take", textContent: "→", title: "Use the version on disk" }),
      });
      this.mine = this.merge.b;
    } else {
      this.mine = new EditorView({ parent, doc: mine, selection, extensions: [shared, writing, unifiedMergeView({ original: theirs, mergeControls: control, collapseUnchanged: folded })] });
    }
  }

  get text() {
    return this.mine.state.doc.sliceString(0, undefined, "\n");
  }

  // at returns the cursor position.
  get at() {
    return this.mine.state.selection.main.head;
  }

  focus() {
    this.mine.focus();
  }

  end() {
    (this.merge ?? this.mine).destroy();
  }
}
