// The entries of the command palette: the links, buttons and menus of the page. An element with data-commands has links and buttons
// that are commands, under the heading that is its value. data-command names one that its text does not, data-hint says more about
// it, data-command-skip leaves it out. A button whose menu is made by a script has it in its property commands (files/menu.js).

import fuzzysort from "fuzzysort";

const leastScore = 0.3;
const keyNames = { Control: "Ctrl", Meta: "⌘" };
const macNames = { ...keyNames, Shift: "⇧" };

// keysOf returns aria-keyshortcuts as people write it: its first alternative, or the one with ⌘ on a Mac. A terminal keeps Ctrl
// with a letter, so there Shift is held as well (shortcuts.js).
export function keysOf(value, { mac = false, terminal = false } = {}) {
  const all = (value ?? "").split(" ").filter(Boolean);
  const one = (mac && all.find((k) => k.startsWith("Meta"))) || all.find((k) => !k.startsWith("Meta")) || "";
  const named = (terminal && !mac ? one.replace(/^Control\+(?=[A-Z]$)/, "Control+Shift+") : one).split("+").map((k) => (mac ? macNames : keyNames)[k] ?? (k.length === 1 ? k.toUpperCase() : k));
  return mac ? named.join("") : named.join("+");
}

// unique leaves out entries that say and do the same as an earlier one.
export function unique(entries) {
  const seen = new Set();
  return entries.filter(({ text, to, group }) => {
    const key = `${text}\n${to || group}`.toLowerCase();
    return !seen.has(key) && seen.add(key);
  });
}

// rank finds commands by what is typed, the best first: by their own text, and only then by what is beside it. It returns
// {command, marks}; marks are the places of the letters in the text that match.
export function rank(commands, query, limit) {
  const found = fuzzysort.go(query, commands, { keys: ["text", "hint", "group"], scoreFn: ([text, hint, group]) => Math.max(text.score, 0.6 * hint.score, 0.5 * group.score) });
  const places = new Map(commands.map((command, i) => [command, i]));
  return found.filter((r) => r.score > leastScore).sort((a, b) => b.score - a.score || places.get(a.obj) - places.get(b.obj)).slice(0, limit)
    .map((r) => ({ command: r.obj, marks: r[0].score > 0 ? [...r[0].indexes] : [] }));
}

function textOf(element) {
  const copy = element.cloneNode(true);
  for (const e of copy.querySelectorAll(".key, .visually-hidden, svg, .end, .menu-hint")) e.remove();
  return copy.textContent.replace(/\s+/g, " ").trim();
}

function usable(element, scope) {
  if (element.closest("[data-command-skip], [data-empty]") || element.disabled || element.ariaDisabled === "true") return false;
  const hidden = element.closest("[hidden]");
  return !hidden || hidden.matches("[data-palette-links]") || !scope.contains(hidden);
}

// within does what belongs to a pane, which is shown first if it is hidden.
function within(element, act) {
  const pane = element.closest("[data-pane]");
  if (pane && !pane.checkVisibility()) document.dispatchEvent(new CustomEvent("sandboxd:show", { detail: pane.dataset.pane }));
  act();
}

// entryOf returns {group, text, hint, keys, icon, to, run, many}; many says that its group may be long.
function entryOf(element, group, where) {
  return {
    group, text: element.dataset.command || element.getAttribute("aria-label") || textOf(element), hint: element.dataset.hint ?? element.querySelector(".end:not(.key)")?.textContent.trim() ?? "",
    keys: keysOf(element.getAttribute("aria-keyshortcuts"), where), icon: element.querySelector("svg.icon"), to: element.getAttribute("href") ?? "", run: () => within(element, () => element.click()),
    many: Boolean(element.closest("[data-palette-links]")),
  };
}

// menuEntries are those of a menu that a script makes.
function menuEntries(element) {
  const { label, items } = element.commands;
  return items().filter((it) => it && !it.off).map((it) => ({
    group: label, text: it.checked === undefined ? it.text : `${it.text}: ${it.checked ? "on" : "off"}`, hint: "", keys: it.key ?? "", icon: it.icon, to: "", run: () => within(element, it.act),
  }));
}

// commandsOf returns the entries of a page in its order, with their keys on a Mac or in a terminal (keysOf).
export function commandsOf(page, where = {}) {
  const entries = [];
  for (const element of page.querySelectorAll("[data-commands] :is(a[href], button), [data-command], [data-menu]")) {
    if (element.commands && !element.closest("[hidden], [data-empty]")) entries.push(...menuEntries(element));
    if (element.ariaHasPopup === "menu") continue;
    const scope = element.closest("[data-commands]");
    if (!scope && !("command" in element.dataset)) continue;
    if (usable(element, scope ?? element)) entries.push(entryOf(element, scope?.dataset.commands ?? "Actions", where));
  }
  return unique(entries.filter((e) => e.text));
}
