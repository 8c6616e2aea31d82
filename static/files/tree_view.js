// TreeView shows a Tree and passes the user's actions to its owner. It is an ARIA tree with one tab stop, virtual rows,
// in-place renaming, and drag and drop.
import { Node } from "./model.js";
import { baseOf, encodeName, nameFault, parentOf, within } from "./paths.js";
import { nameField } from "./name_field.js";
import { nameElement, plainName, textElement } from "./names.js";
import { command, h, icon } from "../js/dom.js";
import { iconOf } from "./kinds.js";
import { VirtualList } from "./virtual_list.js";
import { kindName, shortTime, permissions, size, fullTime } from "./format.js";

const typing = 700; // ms between letters of one prefix
const hold = 550; // ms; a long press opens the menu
const springs = 700; // ms; dragging over a closed folder opens it
export const dragType = "application/x-sandboxd-paths";

export class TreeView {
  #typed = "";
  #typedUntil = 0;
  #edit = null; // {path, element, cancel()}
  #press = null;
  #spring = null;
  #over = "";
  #clicked = null; // the file of the last click

  // owner: {tree, open(node, {pin}), toggle(node, open), menu(nodes, at), key(event) → handled, moved(paths, folder, copy),
  // dropped(transfer, folder), retry(node), more(node)}
  constructor(owner) {
    this.owner = owner;
    this.id = `tree-${Math.random().toString(36).slice(2, 8)}`;
    this.canvas = h("div", { class: "tree-rows", role: "none" });
    this.head = h("div", { class: "tree-head", "aria-hidden": "true" },
      h("span", { class: "col-name" }, "Name"), h("span", { class: "col-size" }, "Size"), h("span", { class: "col-time" }, "Modified"),
      h("span", { class: "col-mode" }, "Permissions"), h("span", { class: "col-owner" }, "Owner"));
    this.element = h("div", { class: "tree", role: "tree", tabindex: "0", "aria-multiselectable": "true", "aria-label": "Files", "data-focus": true }, this.head, this.canvas);
    this.list = new VirtualList(this.element, this.canvas, {
      key: (row) => row.path, make: (row) => this.#make(row), version: (row) => this.#version(row), place: (e, i) => this.#place(e, i),
    });
    this.#listen();
  }

  get tree() {
    return this.owner.tree;
  }

  end() {
    this.list.end();
  }

  show() {
    this.list.show(this.tree.rows);
    this.#point();
  }

  // scrollTo scrolls to the cursor.
  scrollTo(align) {
    const i = this.tree.at.get(this.tree.cursor);
    if (i !== undefined) this.list.scrollTo(i, align);
    this.#point();
  }

  focus() {
    this.element.focus({ preventScroll: true });
  }

  #version(row) {
    if (!(row instanceof Node)) return `${row.kind} ${row.node.state}`;
    const e = row.entry;
    return [e.type, e.target_type, e.size, e.modified, e.mode, e.owner, row.open, row.level, row.state, this.#edit?.path === row.path, this.owner.isCut?.(row.path)].join();
  }

  #place(element, i) {
    const row = this.tree.rows[i];
    element.id = `${this.id}-${i}`;
    if (!(row instanceof Node)) return;
    element.setAttribute("aria-posinset", row.index);
    element.setAttribute("aria-setsize", row.of);
    element.setAttribute("aria-selected", String(this.tree.selected.has(row.path)));
    element.classList.toggle("here", row.path === this.tree.cursor);
    element.classList.toggle("into", row.path === this.#over);
  }

  #point() {
    const i = this.tree.at.get(this.tree.cursor);
    if (i === undefined) this.element.removeAttribute("aria-activedescendant");
    else this.element.setAttribute("aria-activedescendant", `${this.id}-${i}`);
  }

  #make(row) {
    if (!(row instanceof Node)) return this.#makeNote(row);
    const { entry } = row;
    const look = iconOf(entry, row.open);
    const glyph = h("span", { class: `glyph${look.tint ? ` tint-${look.tint}` : ""}${look.folder ? " folder" : ""}` }, icon(look.icon), entry.type === "link" && icon("arrow", "badge"));
    const twist = h("span", { class: "twist" }, row.folder && icon(row.state === "slow" ? "state-busy" : "right", row.state === "slow" ? "turning" : ""));
    const name = this.#edit?.path === row.path ? this.#edit.element : h("span", { class: "names" }, nameElement(row.key), entry.type === "link" && target(entry));
    const element = h("div", {
      class: `tree-row${entry.name.startsWith(".") ? " dim" : ""}${this.owner.isCut?.(row.path) ? " cut" : ""}`, role: "treeitem", "aria-level": row.level,
      "aria-expanded": row.folder ? String(row.open) : null, draggable: "true", title: tooltip(row),
    },
    h("span", { class: "col-name" }, twist, glyph, name),
    h("span", { class: "visually-hidden" }, entry.type === "file" ? "" : kindName(entry)), h("span", { class: "col-size" }, entry.type === "file" ? size(entry.size) : ""),
    h("span", { class: "col-time", "aria-hidden": "true", title: fullTime(entry.modified) }, shortTime(entry.modified)),
    h("span", { class: "col-mode", "aria-hidden": "true" }, permissions(entry.mode)), h("span", { class: "col-owner", "aria-hidden": "true" }, entry.owner));
    element.style.setProperty("--level", row.level - 1);
    element.dataset.path = row.path;
    return element;
  }

  #makeNote(row) {
    const { kind, node } = row;
    const texts = { empty: "Empty", "only-hidden": "Only hidden files", more: "Loading more…", cut: "Too many entries to show. Use the search to find the others." };
    const inside = kind === "loading" ? (node.state === "slow" ? h("span", { class: "skeleton", "aria-label": "Loading…" }) : "")
      : kind === "error" ? [icon("warn"), h("span", { class: "clip", title: node.problem?.message }, node.problem?.message ?? "The folder could not be listed."), h("button", { type: "button", class: "link", tabindex: "-1", click: () => this.owner.retry(node) }, "Retry")]
        : texts[kind];
    if (kind === "more") queueMicrotask(() => this.owner.more(node));
    const element = h("div", { class: `tree-row note is-${kind}`, role: "treeitem", "aria-disabled": "true" }, inside);
    element.style.setProperty("--level", row.level - 1);
    element.dataset.path = row.path;
    return element;
  }

  // edit lets the user type a name in the row of path. It resolves to the name, or "" when cancelled.
  edit(path, value, fault = nameFault) {
    this.#edit?.cancel();
    return new Promise((resolve) => {
      const { element, input, cancel } = nameField(value, fault, (name, byKey) => {
        this.#edit = null;
        resolve(name);
        this.list.redraw(path);
        if (byKey) this.focus();
      });
      this.#edit = { path, element, cancel };
      this.list.redraw(path);
      input.focus();
      const dot = value.lastIndexOf(".");
      input.setSelectionRange(0, dot > 0 ? dot : value.length);
    });
  }

  get editing() {
    return Boolean(this.#edit);
  }

  #listen() {
    const e = this.element;
    e.addEventListener("keydown", (event) => this.#key(event));
    e.addEventListener("focus", () => {
      if (!this.tree.cursor && this.tree.rows.length) this.#go(this.tree.step(0), "one");
    });
    e.addEventListener("pointerdown", (event) => this.#pointer(event));
    for (const kind of ["pointerup", "pointercancel", "pointermove"]) e.addEventListener(kind, (event) => this.#release(event));
    e.addEventListener("click", (event) => this.#click(event));
    const { signal } = this.owner.away; // opening a file moves the rows, so that the second click of a double click may hit anything
    document.addEventListener("click", (event) => event.detail < 2 && (this.#clicked = null), { capture: true, signal });
    document.addEventListener("dblclick", () => this.#clicked && this.owner.open(this.#clicked, { pin: true }), { capture: true, signal });
    e.addEventListener("contextmenu", (event) => {
      event.preventDefault();
      if (event.button !== 2 && event.target === e) this.menuAtCursor(); // the menu key
      else this.#menuAt(event.target, event.clientX, event.clientY);
    });
    e.addEventListener("dragstart", (event) => this.#dragStart(event));
    e.addEventListener("dragover", (event) => this.#dragOver(event));
    e.addEventListener("dragleave", (event) => !e.contains(event.relatedTarget) && this.#into(""));
    e.addEventListener("drop", (event) => this.#drop(event));
  }

  #nodeOf(event) {
    const path = event.target.closest?.(".tree-row")?.dataset.path;
    const row = this.tree.rows[this.tree.at.get(path)];
    return row instanceof Node ? row : null;
  }

  #click(event) {
    const node = this.#nodeOf(event);
    if (this.#press?.spent || (this.#clicked && event.detail > 1)) return;
    if (!node) {
      if (!event.target.closest("button")) this.#clearSelection();
      return;
    }
    const how = event.shiftKey ? "range" : command(event) ? "toggle" : "one";
    this.tree.select(node.path, how);
    this.show();
    if (how !== "one" || event.detail > 1) return;
    if (node.folder) this.owner.toggle(node, !node.open);
    else {
      this.#clicked = node;
      this.owner.open(node, { pin: false, keepFocus: true });
    }
  }

  #clearSelection() {
    this.tree.selected.clear();
    this.show();
  }

  // A long press opens the menu in browsers that do not send contextmenu for it.
  #pointer(event) {
    this.#press = null;
    if (event.pointerType !== "touch" || !event.isPrimary) return;
    const { clientX: x, clientY: y, target } = event;
    const press = { x, y, spent: false };
    press.timer = setTimeout(() => {
      press.spent = true;
      this.#menuAt(target, x, y);
    }, hold);
    this.#press = press;
  }

  #release(event) {
    const press = this.#press;
    if (!press) return;
    if (event.type === "pointermove" && Math.hypot(event.clientX - press.x, event.clientY - press.y) < 8) return;
    clearTimeout(press.timer);
  }

  #menuAt(target, x, y) {
    if (this.#press) {
      clearTimeout(this.#press.timer);
      this.#press.spent = true;
    }
    const row = target.closest?.(".tree-row");
    const node = row && this.#nodeOf({ target: row });
    if (!node) this.tree.selected.clear();
    else if (!this.tree.selected.has(node.path)) this.tree.select(node.path);
    this.show();
    this.owner.menu(node ? this.tree.selection() : [], { x, y });
  }

  // menuAtCursor opens the menu from the keyboard.
  menuAtCursor() {
    const box = (this.list.element(this.tree.cursor) ?? this.element).getBoundingClientRect();
    this.owner.menu(this.tree.selection(), { x: box.left + 32, y: Math.min(box.bottom, innerHeight - 40) });
  }

  #go(row, how) {
    if (!row) return;
    this.tree.select(row.path, how);
    this.scrollTo();
    this.show();
  }

  #key(event) {
    if (event.target !== this.element || this.#edit) return;
    if (event.timeStamp >= this.#typedUntil || (event.key.length > 1 && event.key !== "Shift")) this.#typed = "";
    const { tree } = this;
    const node = tree.current();
    const how = event.shiftKey ? "range" : command(event) ? "move" : "one";
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: this.list.perPage, PageUp: -this.list.perPage, Home: -tree.rows.length, End: tree.rows.length };
    if (steps[event.key] && !event.altKey) this.#go(tree.step(steps[event.key]), how);
    else if (event.key === "ArrowRight" && !event.altKey) this.#right(node);
    else if (event.key === "ArrowLeft" && !event.altKey) this.#left(node);
    else if (event.key === "Enter" && node && !command(event)) node.folder ? this.owner.toggle(node, !node.open) : this.owner.open(node, { pin: true });
    else if (event.key === "Enter") tree.rows[tree.at.get(tree.cursor)]?.kind === "error" && this.owner.retry(tree.rows[tree.at.get(tree.cursor)].node);
    else if (event.key === " " && node && !this.#typed) command(event) ? this.#toggle(node) : this.owner.open(node, { pin: false, keepFocus: true });
    else if (event.key === "ContextMenu" || (event.key === "F10" && event.shiftKey)) this.menuAtCursor();
    else if (event.key === "*" && node?.parent) this.#openSiblings(node);
    else if (!this.owner.key(event) && !this.#type(event)) return;
    event.preventDefault();
    event.stopPropagation();
  }

  #toggle(node) {
    this.tree.select(node.path, "toggle");
    this.show();
  }

  #right(node) {
    if (!node?.folder) return;
    if (!node.open) this.owner.toggle(node, true);
    else this.#go(this.tree.step(1), "one");
  }

  #left(node) {
    if (node?.folder && node.open) this.owner.toggle(node, false);
    else if (node && node.parent !== this.tree.root) this.#go(node.parent, "one");
  }

  #openSiblings(node) {
    for (const n of node.parent.children) if (n.entry.type === "folder" && !n.open) this.owner.toggle(n, true);
  }

  #type(event) {
    if (event.key.length !== 1 || event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return false;
    this.#typed += event.key.toLowerCase();
    this.#typedUntil = event.timeStamp + typing;
    const same = [...this.#typed].every((c) => c === this.#typed[0]);
    this.#go(this.tree.findByPrefix(same ? this.#typed[0] : this.#typed), "one");
    return true;
  }

  #dragStart(event) {
    const node = this.#nodeOf(event);
    if (!node || this.#edit) return event.preventDefault();
    if (!this.tree.selected.has(node.path)) this.tree.select(node.path);
    this.show();
    const nodes = this.tree.selection();
    event.dataTransfer.effectAllowed = "copyMove";
    event.dataTransfer.setData(dragType, JSON.stringify({ base: this.owner.base, paths: nodes.map((n) => n.path) }));
    if (nodes.length === 1 && node.entry.type === "file") this.owner.dragOut?.(event.dataTransfer, node);
    const ghost = h("div", { class: "drag-ghost" }, nodes.length === 1 ? textElement(plainName(node.key)) : `${nodes.length} items`);
    document.body.append(ghost);
    event.dataTransfer.setDragImage(ghost, -8, 12);
    setTimeout(() => ghost.remove());
    this.dragged = nodes.map((n) => n.path);
  }

  // #folderAt returns the folder that a drop here goes to.
  #folderAt(event) {
    const node = this.#nodeOf(event);
    if (!node) return this.tree.root;
    return node.folder ? node : node.parent;
  }

  #dragOver(event) {
    const types = event.dataTransfer.types;
    const own = types.includes(dragType);
    if (!own && !types.includes("Files")) return;
    const folder = this.#folderAt(event);
    if (own && this.dragged?.some((p) => within(folder.path, p) || (parentOf(p) === folder.path && !copies(event)))) return this.#into("");
    event.preventDefault();
    event.dataTransfer.dropEffect = own && !copies(event) ? "move" : "copy";
    this.#into(folder.path);
    this.#scrollAt(event);
  }

  #into(path) {
    if (path === this.#over) return;
    this.#over = path;
    clearTimeout(this.#spring);
    this.element.classList.toggle("into-root", path === this.tree.root.path);
    const node = path && this.tree.find(path);
    if (node && !node.open) this.#spring = setTimeout(() => this.owner.toggle(node, true), springs);
    this.show();
  }

  #scrollAt(event) {
    const box = this.element.getBoundingClientRect();
    const edge = 28;
    if (event.clientY < box.top + edge) this.element.scrollTop -= 12;
    else if (event.clientY > box.bottom - edge) this.element.scrollTop += 12;
  }

  #drop(event) {
    const folder = this.#folderAt(event);
    const own = event.dataTransfer.getData(dragType);
    event.preventDefault();
    event.stopPropagation();
    this.#into("");
    if (!own) return this.owner.dropped(event.dataTransfer, folder.path);
    try {
      const { base, paths } = JSON.parse(own);
      if (base === this.owner.base) this.owner.moved(paths, folder.path, copies(event));
    } catch {
      // not from one of these trees
    }
  }
}

const copies = (event) => event.ctrlKey || event.altKey;

function target(entry) {
  return h("span", { class: "target" }, "→ ", textElement(entry.target ?? ""));
}

function tooltip(node) {
  const e = node.entry;
  const lines = [plainName(node.key), kindName(e)];
  if (e.type === "file") lines.push(`${size(e.size)} (${e.size.toLocaleString("en")} bytes)`);
  if (e.type === "link") lines.push(`→ ${plainName(encodeName(e.target ?? ""))}`);
  lines.push(`Modified ${fullTime(e.modified)}`, `${permissions(e.mode)} (${e.mode}) ${e.owner}:${e.group}`);
  return lines.join("\n");
}
