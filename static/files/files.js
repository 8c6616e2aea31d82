// <sandbox-files>: the file tree of a sandbox. While the sandbox is asleep it sends no requests until the user acts.
import "../css/files.css";
import { onResume } from "../js/page_lifecycle.js";
import { readJSON, writeJSON } from "../js/storage.js";
import { hideToast, toast } from "../js/toast.js";
import { Files, problemOf } from "./api.js";
import { FileActions } from "./actions.js";
import { button, command, h, icon } from "../js/dom.js";
import { choose, fromDrop, fromInput } from "./dropped.js";
import { FindView } from "./find_view.js";
import { Loader } from "./loader.js";
import { closeMenu, menuButton, offer, openMenu } from "./menu.js";
import { menuOf, paneMenu } from "./tree_menus.js";
import { Tree } from "./model.js";
import { PathBar } from "./path_bar.js";
import { encodePath, join, parentOf, within } from "./paths.js";
import { plainName } from "./names.js";
import { send, wait } from "./upload_request.js";
import { TrashView } from "./trash_view.js";
import { TreeView } from "./tree_view.js";
import { UploadPanel } from "./upload_panel.js";
import { Uploads } from "./uploads.js";
import { watchOf } from "./watch.js";

class SandboxFiles extends HTMLElement {
  static observedAttributes = ["data-state"];
  #started = false;

  connectedCallback() {
    this.#started = false;
    this.away = new AbortController();
    this.home = encodePath(this.dataset.home || "/");
    this.whole = "whole" in this.dataset; // the home is shown as the path that it is
    this.base = this.dataset.base;
    this.files = new Files(this.base, this.home, this.dataset.box);
    this.tree = new Tree();
    this.loader = new Loader(this);
    this.uploads = new Uploads(this.files, {
      send, wait, store: localStorage, locks: navigator.locks, owner: this.owner, ask: (u, more) => this.actions.askUpload(u, more), changed: () => this.panel?.soon(), arrived: (path) => this.#uploaded(path),
    });
    this.actions = new FileActions(this);
    this.#draw();
    this.#listen();
    this.watch = watchOf(this.files);
    this.#visibilityChanged();
    if (this.running) this.#start();
  }

  disconnectedCallback() {
    this.away.abort();
    this.view.end();
    this.find.stop();
    this.watch.drop(this);
    hideToast();
    closeMenu(false);
  }

  attributeChangedCallback(_, before, now) {
    if (before === now || !this.view) return;
    this.#visibilityChanged();
    if (this.running && !this.#started) this.#start();
    else if (this.running) this.loader.reloadAll();
  }

  // owner is the key of browser storage: the user and this sandbox.
  get owner() {
    return `${document.body.dataset.person ?? ""} ${this.dataset.box ?? this.base}`;
  }

  get running() {
    return ["files", "running"].includes(this.dataset.state);
  }

  // visible says whether refreshing is worthwhile.
  visible() {
    return this.running && !document.hidden && this.checkVisibility();
  }

  #draw() {
    this.view = new TreeView(this);
    this.path = new PathBar({ files: this.files, home: this.home, whole: this.whole, go: (path) => this.#go(path) });
    this.find = new FindView({ files: this.files, home: this.home, whole: this.whole, open: (path, at) => this.#openPath(path, at), reveal: (path) => this.#revealFrom(path), close: () => this.#setView("tree") });
    this.trash = new TrashView({ files: this.files, home: this.home, whole: this.whole, close: () => this.#setView("tree"), restored: () => this.loader.reloadAll() });
    this.panel = new UploadPanel(this.uploads);
    const home = button(this.whole ? "box" : "home", this.whole ? "Volume" : "Home", () => this.#go(this.home));
    const up = button("up", "Parent folder", () => this.#go(parentOf(this.tree.root.path)));
    const more = menuButton(button("dots", "More"), () => paneMenu(this), { label: "Files" });
    const add = menuButton(button("plus", "New or upload"), () => this.#addMenu(), { label: "New" });
    home.classList.add("roomy");
    up.classList.add("roomy");
    const editor = h("button", { type: "button", class: "button low files-open", "data-command-skip": true, title: "Back to the editor", "aria-label": "Back to the editor", click: () => document.dispatchEvent(new CustomEvent("sandboxd:editor")) }, icon("code"));
    this.bar = h("div", { class: "files-bar", "data-commands": "Files" }, home, up, this.path.element, editor, add, button("search", "Find files", () => this.#setView("find")), more);
    offer(this.view.element, () => (this.tree.selection().length ? menuOf(this, this.tree.selection()) : []), { label: "Selected files" });
    this.up = up;
    this.body = h("div", { class: "files-body" }, this.view.element, this.find.element, this.trash.element);
    this.replaceChildren(this.bar, this.body, this.panel.element);
    this.panel.draw();
    this.#setView("tree", false);
  }

  #addMenu() {
    return [
      { icon: "new-file", text: "New file", act: () => this.actions.create("file") },
      { icon: "new-folder", text: "New folder", act: () => this.actions.create("folder") },
      null,
      { icon: "upload", text: "Upload files…", act: () => this.upload(this.actions.targetFolder().path) },
      { icon: "upload", text: "Upload a folder…", act: () => this.upload(this.actions.targetFolder().path, true) },
    ];
  }

  #listen() {
    const { signal } = this.away;
    document.addEventListener("visibilitychange", () => this.#visibilityChanged(), { signal });
    onResume(() => this.tree.openFolders().filter((n) => n.state === "error").forEach((n) => this.retry(n)), { signal });
    addEventListener("beforeunload", (event) => this.uploads.fragile && event.preventDefault(), { signal });
    document.addEventListener("sandboxd:find", (event) => this.#findText(event.detail), { signal });
    document.addEventListener("sandboxd:reveal", (event) => this.#revealFrom(this.#pathOf(event.detail)), { signal });
    new ResizeObserver(() => this.#visibilityChanged()).observe(this);
    this.view.element.addEventListener("paste", (event) => this.#pasteFiles(event));
    this.addEventListener("dragover", (event) => event.dataTransfer.types.includes("Files") && event.preventDefault());
    this.addEventListener("drop", (event) => event.dataTransfer.types.includes("Files") && event.preventDefault()); // a drop outside the tree must not open the file
  }

  #findText(text) {
    document.dispatchEvent(new CustomEvent("sandboxd:show", { detail: "files" }));
    this.find.field.value = text;
    this.find.setMode("content");
    this.#setView("find");
  }

  #pathOf(detail) {
    return detail.encoded ?? encodePath(detail.path, this.home);
  }

  #visibilityChanged() {
    const seen = this.running && !document.hidden && this.checkVisibility();
    this.watch.run(seen);
    if (seen) this.loader.resume();
  }

  async #start() {
    this.#started = true;
    const kept = this.#readState();
    this.tree.showHidden = kept.hidden ?? true;
    this.tree.setRoot(kept.root && this.files ? kept.root : this.home);
    this.path.show(this.tree.root.path);
    this.up.disabled = this.tree.root.path === "/";
    await this.loader.read(this.tree.root);
    if (this.tree.root.state === "error" && this.tree.root.path !== this.home) return this.#go(this.home);
    await this.#reopen(kept.open ?? []);
  }

  async #reopen(paths) {
    for (const path of paths.slice(0, 32)) {
      const node = this.tree.find(path);
      if (node?.folder) await this.toggle(node, true);
    }
  }

  // The view state is stored in this browser.
  #readState() {
    return readJSON(localStorage, `files ${this.owner}`);
  }

  saveState() {
    const open = this.tree.openFolders().slice(1, 33).map((n) => n.path);
    const kept = { root: this.tree.root.path === this.home ? undefined : this.tree.root.path, open, hidden: this.tree.showHidden };
    writeJSON(localStorage, `files ${this.owner}`, kept);
  }

  // changed redraws the tree.
  changed() {
    this.view.show();
    this.watch.want(this, this.tree.openFolders().map((n) => n.path), (path) => this.loader.changed(path));
  }

  // #setView shows the tree, the search or the trash.
  #setView(to, focus = true) {
    this.dataset.view = to;
    this.view.element.hidden = to !== "tree";
    this.find.element.hidden = to !== "find";
    this.trash.element.hidden = to !== "trash";
    if (to !== "find") this.find.stop();
    if (to === "find") this.find.start(this.tree.root.path);
    if (to === "trash") this.trash.start();
    if (to === "tree" && focus) this.view.focus();
  }

  setView(to) {
    this.#setView(to);
  }

  // #go makes a folder the root of the tree, or opens a file. It returns an error message, or "".
  async #go(path) {
    let entry;
    try {
      entry = path === this.home || path === "/" ? { type: "folder" } : await this.files.stat(path);
    } catch (err) {
      return problemOf(err).message;
    }
    if ((entry.target_type ?? entry.type) !== "folder") {
      this.#revealFrom(path);
      this.#openPath(path, {});
      return "";
    }
    this.#setView("tree", false);
    this.tree.setRoot(path);
    this.path.show(path);
    this.up.disabled = path === "/";
    this.saveState();
    await this.loader.read(this.tree.root);
    this.view.focus();
    return "";
  }

  go(path) {
    return this.#go(path);
  }

  // show opens a folder in the tree.
  async show(node) {
    this.#setView("tree", false);
    if (node !== this.tree.root) await this.toggle(node, true);
    else await this.loader.open(node);
  }

  async toggle(node, open) {
    node.open = open;
    if (open) await this.loader.open(node);
    this.tree.flatten();
    this.changed();
    this.saveState();
  }

  retry(node) {
    this.loader.read(node);
  }

  more(node) {
    this.loader.more(node);
  }

  open(node, { pin = false, keepFocus = false } = {}) {
    if (!node) return;
    this.#openPath(node.path, { pin, keepFocus });
  }

  #openPath(encoded, detail) {
    document.dispatchEvent(new CustomEvent("sandboxd:open", { detail: { encoded, pin: true, ...detail } }));
  }

  // reveal selects a path below the root.
  async reveal(path) {
    const node = await this.loader.reveal(path);
    if (node) this.tree.select(node.path);
    this.changed();
    this.view.scrollTo("nearest");
    return node;
  }

  async #revealFrom(path) {
    this.#setView("tree", false);
    if (!within(path, this.tree.root.path)) {
      this.tree.setRoot(within(path, this.home) ? this.home : parentOf(path));
      this.path.show(this.tree.root.path);
      this.up.disabled = this.tree.root.path === "/";
    }
    if (!(await this.reveal(path))) this.toast(`${plainName(path)} does not exist.`, { bad: true });
    else this.view.scrollTo("center");
  }

  // menu opens the menu of nodes, or of the root when there are none.
  menu(nodes, at) {
    openMenu(menuOf(this, nodes), at, { label: nodes.length ? plainName(nodes[0].key) : "Files" });
  }

  // key handles a key in the tree, and says whether it did.
  key(event) {
    const nodes = this.tree.selection();
    const at = this.tree.current();
    const cmd = command(event);
    if (event.key === "F2" && at) this.actions.rename(at);
    else if (event.key === "Delete" || (event.key === "Backspace" && cmd)) this.actions.remove(nodes, event.shiftKey);
    else if (event.key === "ArrowUp" && event.altKey) this.#go(parentOf(this.tree.root.path));
    else if (event.key === "Escape") this.#clearSelection();
    else if (!cmd || event.altKey || event.shiftKey) return false;
    else return this.#commandKey(event.key.toLowerCase(), nodes);
    return true;
  }

  #commandKey(key, nodes) {
    const act = {
      a: () => this.tree.selectAll(), c: () => this.actions.setClipboard(nodes, false), x: () => this.actions.setClipboard(nodes, true), z: () => this.actions.undo(), f: () => this.#setView("find"),
    }[key];
    if (key === "v" && this.actions.clipboard) this.actions.paste();
    else if (!act) return false;
    act?.();
    this.view.show();
    return true;
  }

  #clearSelection() {
    this.tree.selected.clear();
    if (this.actions.clipboard?.cut) this.actions.clipboard = null;
    this.view.show();
  }

  isCut(path) {
    return Boolean(this.actions.clipboard?.cut && this.actions.clipboard.paths.some((p) => within(path, p)));
  }

  dragOut(transfer, node) {
    const url = new URL(this.files.url(node.path), location.href);
    transfer.setData("DownloadURL", `application/octet-stream:${plainName(node.key).replaceAll(":", "_")}:${url}`);
  }

  moved(...args) {
    if (Array.isArray(args[0])) return this.actions.moveOrCopy(...args); // a drop within the tree
    document.dispatchEvent(new CustomEvent("sandboxd:moved", { detail: { from: args[0], to: args[1] } }));
  }

  gone(paths) {
    document.dispatchEvent(new CustomEvent("sandboxd:gone", { detail: { paths } }));
  }

  async dropped(transfer, folder) {
    await this.#addUploads(fromDrop(transfer), folder);
  }

  async #addUploads(read, folder) {
    try {
      const items = await read(folder);
      if (items.length) this.uploads.add(items);
    } catch (err) {
      this.toast(`The dropped files could not be read: ${problemOf(err).message}`, { bad: true });
    }
  }

  async upload(folder, whole = false) {
    const list = await choose({ folder: whole });
    if (list.length) this.uploads.add(fromInput(list, folder));
  }

  #pasteFiles(event) {
    if (!event.clipboardData.files.length) return;
    event.preventDefault();
    this.uploads.add([...event.clipboardData.files].map((file) => ({ file, path: join(this.actions.targetFolder().path, encodeURIComponent(file.name)) })));
  }

  #uploaded(path) {
    this.loader.changed(parentOf(path));
    const top = this.tree.root.path;
    for (let folder = parentOf(path); within(folder, top) && folder !== top; folder = parentOf(folder)) {
      if (!this.tree.find(folder)) this.loader.changed(parentOf(folder)); // created for the upload
    }
  }

  toast(text, options) {
    toast(text, { ...options, refocus: () => this.view.focus() });
  }
}

customElements.define("sandbox-files", SandboxFiles);
