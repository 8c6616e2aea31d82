// The tree of files, without a DOM: known folders, open folders, the selection, and the resulting rows.
import { join, parentOf, within } from "./paths.js";

// Node is one entry. children is null until its folder has been listed.
export class Node {
  constructor(path, entry, parent) {
    this.path = path;
    this.entry = entry;
    this.parent = parent;
    this.level = parent ? parent.level + 1 : 0;
    this.children = null;
    this.open = false;
    this.next = ""; // where the next page starts
    this.cut = false; // there are more entries than are kept
    this.state = ""; // "loading", "slow" (loading is shown), "error"
    this.problem = null;
    this.index = 0; // among its visible siblings
    this.of = 0;
  }

  get key() {
    return this.entry.key;
  }

  // folder says whether the node can be opened: a folder, or a link to one.
  get folder() {
    return this.entry.type === "folder" || (this.entry.type === "link" && this.entry.target_type === "folder");
  }

  get hidden() {
    return this.key.startsWith(".");
  }
}

// Rows that are not entries show the state of a folder.
const note = (kind, node) => ({ kind, node, level: node.level + 1, path: `${node.path}\0${kind}` });

export class Tree {
  constructor() {
    this.setRoot("/");
    this.showHidden = true;
  }

  setRoot(path) {
    this.root = new Node(path, { key: "", type: "folder" }, null);
    this.root.open = true;
    this.rows = [];
    this.at = new Map(); // path → row index
    this.selected = new Set();
    this.cursor = "";
    this.anchor = "";
    this.draftNode = null;
  }

  // draft adds a row for a new, unnamed entry at the top of its folder.
  draft(folder, type) {
    this.draftNode = new Node(`${folder.path}\0new`, { key: "", name: "", type, size: 0, mode: "0000", owner: "", group: "", modified: "" }, folder);
    this.draftNode.back = this.cursor;
    this.flatten();
    this.cursor = this.draftNode.path;
    return this.draftNode;
  }

  // drop removes that row and restores the cursor.
  drop(node) {
    if (this.draftNode === node) this.draftNode = null;
    if (this.cursor === node.path) this.cursor = node.back;
    this.flatten();
  }

  // find returns the node of a path, if known.
  find(path) {
    if (path === this.root.path) return this.root;
    if (!within(path, this.root.path)) return null;
    let node = this.root;
    while (node && node.path !== path) node = node.children?.find((c) => within(path, c.path)) ?? null;
    return node;
  }

  // fill sets a folder's entries, or appends its next page. Existing nodes are kept, with their state and selection.
  fill(node, entries, { next = "", append = false, most = Infinity } = {}) {
    const old = new Map((node.children ?? []).map((c) => [c.key, c]));
    const fresh = entries.map((entry) => {
      const kept = old.get(entry.key);
      if (!kept) return new Node(join(node.path, entry.key), entry, node);
      kept.entry = entry;
      if (!kept.folder) [kept.children, kept.open] = [null, false];
      return kept;
    });
    if (append) {
      const more = new Set(entries.map((e) => e.key));
      node.children = [...(node.children ?? []).filter((c) => !more.has(c.key)), ...fresh];
    } else node.children = fresh;
    node.cut = Boolean(next) && node.children.length >= most;
    node.next = node.cut ? "" : next;
    node.state = "";
    node.problem = null;
    this.#forget(node);
    this.flatten();
  }

  fail(node, problem) {
    node.state = "error";
    node.problem = problem;
    this.flatten();
  }

  // #forget deselects removed entries.
  #forget(node) {
    if (!this.selected.size) return;
    const there = new Set(node.children.map((c) => c.path));
    for (const path of this.selected) {
      if (parentOf(path) === node.path && !there.has(path)) this.selected.delete(path);
    }
  }

  // flatten recomputes the rows.
  flatten() {
    const before = this.at.get(this.cursor) ?? 0;
    this.rows = [];
    this.#walk(this.root);
    this.at = new Map(this.rows.map((row, i) => [row.path, i]));
    if (this.cursor && !this.at.has(this.cursor)) {
      this.cursor = this.rows[Math.min(before, this.rows.length - 1)]?.path ?? "";
    }
  }

  #walk(node) {
    const shown = (node.children ?? []).filter((c) => this.showHidden || !c.hidden);
    if (this.draftNode?.parent === node) shown.unshift(this.draftNode);
    shown.forEach((child, i) => {
      child.index = i + 1;
      child.of = node.next ? -1 : shown.length;
      this.rows.push(child);
      if (child.open && child.folder) this.#walk(child);
    });
    if (node.state === "error") this.rows.push(note("error", node));
    else if (!node.children) {
      if (node.state) this.rows.push(note("loading", node));
    } else if (node.next) this.rows.push(note("more", node));
    else if (node.cut) this.rows.push(note("cut", node));
    else if (!shown.length) this.rows.push(note(node.children.length ? "only-hidden" : "empty", node));
  }

  // openFolders returns the visible open folders, the root first.
  openFolders() {
    return [this.root, ...this.rows.filter((r) => r instanceof Node && r.folder && r.open)];
  }

  current() {
    const row = this.rows[this.at.get(this.cursor)];
    return row instanceof Node ? row : null;
  }

  // selection returns the selected nodes in order, or the node at the cursor.
  selection() {
    const nodes = this.rows.filter((r) => r instanceof Node && this.selected.has(r.path));
    if (nodes.length) return nodes;
    const at = this.current();
    return at ? [at] : [];
  }

  // select updates the selection for a click or a key. how: "one", "toggle" (Ctrl), "range" (Shift), "move" (Ctrl and an
  // arrow).
  select(path, how = "one") {
    const to = this.at.get(path);
    if (to === undefined) return;
    if (how === "range") {
      const from = this.at.get(this.anchor) ?? to;
      this.selected.clear();
      for (let i = Math.min(from, to); i <= Math.max(from, to); i++) {
        if (this.rows[i] instanceof Node) this.selected.add(this.rows[i].path);
      }
    } else if (how === "toggle") {
      if (!this.selected.delete(path)) this.selected.add(path);
      this.anchor = path;
    } else if (how === "one") {
      this.selected.clear();
      if (this.rows[to] instanceof Node) this.selected.add(path);
      this.anchor = path;
    }
    this.cursor = path;
  }

  selectAll() {
    for (const row of this.rows) if (row instanceof Node) this.selected.add(row.path);
  }

  // findByPrefix returns the next row whose name starts with text, searching from the cursor and wrapping around.
  findByPrefix(text) {
    const from = this.at.get(this.cursor) ?? -1;
    const first = text.length === 1 ? from + 1 : Math.max(from, 0); // repeating one letter goes to the next match
    for (let i = 0; i < this.rows.length; i++) {
      const row = this.rows[(first + i) % this.rows.length];
      if (row instanceof Node && row.entry.name.toLowerCase().startsWith(text)) return row;
    }
    return null;
  }

  // step returns the row that many rows away, within bounds.
  step(by) {
    const from = this.at.get(this.cursor);
    if (from === undefined) return this.rows[by < 0 ? this.rows.length - 1 : 0] ?? null;
    return this.rows[Math.max(0, Math.min(this.rows.length - 1, from + by))] ?? null;
  }
}
