// The code editor, based on CodeMirror. It is loaded when the first text is opened.
import { autocompletion, closeBrackets, closeBracketsKeymap, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { bracketMatching, foldGutter, foldKeymap, HighlightStyle, indentOnInput, indentUnit, LanguageDescription, syntaxHighlighting } from "@codemirror/language";
import { languages } from "@codemirror/language-data";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { gotoLine, highlightSelectionMatches, openSearchPanel, search, searchKeymap } from "@codemirror/search";
import { Compartment, EditorSelection, EditorState } from "@codemirror/state";
import {
  crosshairCursor, drawSelection, dropCursor, EditorView, highlightActiveLine, highlightActiveLineGutter, highlightSpecialChars, keymap, lineNumbers, rectangularSelection,
} from "@codemirror/view";
import { tags as t } from "@lezer/highlight";

const colour = (name) => `var(--code-${name})`;
const style = HighlightStyle.define([
  { tag: [t.keyword, t.operatorKeyword, t.modifier, t.controlKeyword, t.definitionKeyword], color: colour("keyword") },
  { tag: [t.string, t.special(t.string), t.regexp, t.character], color: colour("string") },
  { tag: [t.number, t.bool, t.null, t.atom, t.unit], color: colour("number") },
  { tag: [t.comment, t.docComment, t.meta], color: colour("comment") },
  { tag: [t.function(t.variableName), t.function(t.propertyName), t.macroName, t.labelName], color: colour("function") },
  { tag: [t.typeName, t.className, t.namespace, t.tagName], color: colour("type") },
  { tag: [t.propertyName, t.attributeName], color: colour("property") },
  { tag: [t.heading], color: colour("keyword"), fontWeight: "600" },
  { tag: [t.link, t.url], color: colour("function"), textDecoration: "underline" },
  { tag: t.emphasis, fontStyle: "italic" },
  { tag: t.strong, fontWeight: "600" },
  { tag: t.strikethrough, textDecoration: "line-through" },
  { tag: [t.inserted], color: colour("string") },
  { tag: [t.deleted, t.invalid], color: colour("invalid") },
]);

// Invisible and bidirectional control characters are shown.
const special = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffc]/g;

// The words of CodeMirror's panels, as elsewhere in the dashboard.
const phrases = {
  next: "Next", previous: "Previous", all: "Select all", "match case": "Match case", regexp: "Regular expression", "by word": "Whole word", replace: "Replace",
  "replace all": "Replace all", close: "Close", go: "Go", "$ unchanged lines": "$ unchanged lines · show",
};

export const theme = [
  EditorState.phrases.of(phrases),
  EditorView.theme({
    "&": { height: "100%", fontSize: "var(--code-size)", backgroundColor: "var(--terminal-bg)", color: "var(--ink)" },
    "&.cm-focused": { outline: "none" },
    ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.55", overflow: "auto" },
    ".cm-content": { caretColor: "var(--ink)", padding: "0.375rem 0" },
    ".cm-cursor": { borderLeftColor: "var(--ink)", borderLeftWidth: "2px" },
    ".cm-gutters": { backgroundColor: "var(--terminal-bg)", color: "var(--ink-3)", border: "none", userSelect: "none" },
    ".cm-lineNumbers .cm-gutterElement": { minWidth: "2.25rem", padding: "0 0.375rem 0 0.5rem" },
    ".cm-activeLine": { backgroundColor: "color-mix(in oklab, var(--ink) 4%, transparent)" },
    ".cm-activeLineGutter": { backgroundColor: "transparent", color: "var(--ink)" },
    "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--code-selection) !important" },
    ".cm-selectionMatch": { backgroundColor: "var(--code-match)" },
    ".cm-searchMatch": { backgroundColor: "var(--code-match)", outline: "1px solid color-mix(in oklab, var(--busy) 45%, transparent)" },
    ".cm-searchMatch-selected": { backgroundColor: "var(--code-found)" },
    ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "transparent", outline: "1px solid var(--line-strong)" },
    ".cm-foldPlaceholder": { backgroundColor: "var(--sunken)", border: "none", color: "var(--ink-3)", padding: "0 0.375rem" },
    ".cm-specialChar": { color: "var(--bad)", backgroundColor: "var(--bad-soft)", borderRadius: "2px" },
  }),
  syntaxHighlighting(style),
];

// describe finds the language of a file by its name or its first line.
function describe(name, text) {
  const found = LanguageDescription.matchFilename(languages, name);
  if (found) return found;
  const first = /^#!.*?\b(bash|sh|zsh|python|node|ruby|perl|lua)/.exec(text.slice(0, 200))?.[1];
  const called = { sh: "shell", bash: "shell", zsh: "shell", node: "javascript" }[first] ?? first;
  return called ? LanguageDescription.matchLanguageName(languages, called) : null;
}

function base({ indent, wrap }) {
  return [
    lineNumbers(), highlightActiveLineGutter(), highlightSpecialChars({ specialChars: special }), foldGutter(), drawSelection(), dropCursor(), indentOnInput(),
    bracketMatching(), closeBrackets(), autocompletion({ activateOnTyping: false }), rectangularSelection(), crosshairCursor(), highlightActiveLine(), highlightSelectionMatches(),
    search({ top: true }), indentUnit.of(indent), EditorState.tabSize.of(indent === "\t" ? 4 : indent.length), wrap ? EditorView.lineWrapping : [],
    keymap.of([...closeBracketsKeymap, ...defaultKeymap, ...searchKeymap, ...historyKeymap, ...foldKeymap, ...completionKeymap, indentWithTab]), theme,
  ];
}

export class Code {
  #language = new Compartment();
  #writable = new Compartment();
  #settings = new Compartment();
  #saved;

  // options: {parent, name, text, eol, indent, wrap, readOnly, marks, changed(dirty), moved(where)}. marks makes room for marks of mistakes. Tests pass another View.
  constructor(options, View = EditorView) {
    this.options = options;
    this.settings = { indent: options.indent, wrap: options.wrap };
    this.view = new View({ parent: options.parent, state: this.#state(options.text) });
    this.#saved = this.view.state.doc;
    this.#loadLanguage(options.text);
  }

  #state(doc) {
    const { eol, readOnly, name } = this.options;
    return EditorState.create({
      doc,
      extensions: [
        this.#settings.of(base(this.settings)), history(), this.#language.of([]), this.#writable.of(this.#readOnlyExtensions(readOnly)),
        eol === "mixed" ? EditorState.lineSeparator.of("\n") : [], this.options.marks ? lintGutter() : [],
        EditorView.contentAttributes.of({ "aria-label": `Text of ${name}`, spellcheck: "false", autocapitalize: "off", tabindex: "0" }),
        EditorView.updateListener.of((update) => this.#updated(update)),
      ],
    });
  }

  #readOnlyExtensions(readOnly) {
    return [EditorState.readOnly.of(readOnly), EditorView.contentAttributes.of(readOnly ? { "aria-readonly": "true" } : {})];
  }

  async #loadLanguage(text) {
    const language = describe(this.options.name, text);
    this.language = language?.name ?? "Plain text";
    if (!language) return this.#where();
    const support = await language.load().catch(() => null);
    if (support && !this.over) this.view.dispatch({ effects: this.#language.reconfigure(support) });
    this.#where();
  }

  #updated(update) {
    if (update.docChanged) this.options.changed(this.dirty);
    if (update.docChanged || update.selectionSet) this.#where();
  }

  #where() {
    if (this.over) return;
    const { main } = this.view.state.selection;
    const line = this.view.state.doc.lineAt(main.head);
    this.options.moved({ line: line.number, column: main.head - line.from + 1, chosen: main.to - main.from, language: this.language });
  }

  get dirty() {
    return !this.view.state.doc.eq(this.#saved);
  }

  get text() {
    return this.view.state.doc.sliceString(0, undefined, "\n");
  }

  // markSaved marks the current text as saved, or text when the user has typed since.
  markSaved(text) {
    this.#saved = text === undefined ? this.view.state.doc : this.view.state.toText(text);
    this.options.changed(this.dirty);
  }

  // replace changes the text with a minimal edit, so that the cursor stays. saved says whether the new text is the saved
  // one.
  replace(text, saved = true) {
    const before = this.text;
    let from = 0;
    const least = Math.min(before.length, text.length);
    while (from < least && before.charCodeAt(from) === text.charCodeAt(from)) from++;
    let end = 0;
    while (end < least - from && before.charCodeAt(before.length - 1 - end) === text.charCodeAt(text.length - 1 - end)) end++;
    const change = this.view.state.update({ changes: { from, to: before.length - end, insert: this.view.state.toText(text.slice(from, text.length - end)) } });
    if (saved) this.#saved = change.newDoc; // before listeners run: text from the disk is never unsaved
    this.view.dispatch(change);
    if (saved) this.options.changed(this.dirty);
  }

  setReadOnly(readOnly) {
    this.view.dispatch({ effects: this.#writable.reconfigure(this.#readOnlyExtensions(readOnly)) });
  }

  configure(settings) {
    Object.assign(this.settings, settings);
    this.view.dispatch({ effects: this.#settings.reconfigure(base(this.settings)) });
  }

  // goTo moves the cursor to a line and column, both from 1. The column counts characters, or bytes.
  // A match that is still there is selected.
  goTo({ line, column = 1, bytes = false, match = "" }) {
    const { doc } = this.view.state;
    const at = doc.line(Math.max(1, Math.min(line, doc.lines)));
    if (bytes) column = new TextDecoder().decode(new TextEncoder().encode(at.text).subarray(0, Math.max(0, column - 1))).length + 1;
    const pos = Math.min(at.from + Math.max(0, column - 1), at.to);
    const end = doc.sliceString(pos, pos + match.length) === match ? pos + match.length : pos;
    this.view.dispatch({ selection: EditorSelection.range(pos, end), effects: EditorView.scrollIntoView(pos, { y: "center" }) });
  }

  // mark marks lines with mistakes: {line, message}, from 1; a line of 0 is the whole file, and is marked at its first one.
  mark(mistakes) {
    const { doc } = this.view.state;
    const marks = mistakes.map(({ line, message }) => {
      const at = doc.line(Math.max(1, Math.min(line, doc.lines)));
      const indent = at.text.length - at.text.trimStart().length;
      return { from: at.from + indent, to: at.to, severity: "error", message };
    });
    this.view.dispatch(setDiagnostics(this.view.state, marks));
  }

  find() {
    openSearchPanel(this.view);
  }

  askLine() {
    gotoLine(this.view);
  }

  focus() {
    this.view.focus();
  }

  end() {
    this.over = true;
    this.view.destroy();
  }
}
