// What users can do to files in the tree: create, rename, move, copy, delete, undo, download. Failures are shown as toasts,
// with a retry where that may help.
import { problemOf } from "./api.js";
import * as dialogs from "./dialog.js";
import { announce } from "../js/announce.js";
import { copy } from "../js/clipboard.js";
import { download, h } from "../js/dom.js";
import { plainName } from "./names.js";
import { baseOf, encodeName, freeName, isText, decodeText, join, nameFault, parentOf, topmost, within } from "./paths.js";
import { properties } from "./properties.js";
import { count } from "./format.js";

// The choices when a name is taken.
const takenButtons = [{ value: "skip", text: "Skip" }, { value: "replace", text: "Replace", kind: "danger" }, { value: "both", text: "Keep both", kind: "primary", usual: true }];

const mostNamed = 3; // in a sentence

// namesOf names paths in a sentence.
function namesOf(paths) {
  return paths.length === 1 ? `“${plainName(baseOf(paths[0]))}”` : count(paths.length, "item");
}

// listed names the first few paths.
function listed(paths) {
  const more = paths.length - mostNamed;
  const names = paths.slice(0, more === 1 ? mostNamed + 1 : mostNamed).map((path) => namesOf([path]));
  const last = more > 1 ? `${more} more` : names.pop();
  return `${names.join(", ")} and ${last}`;
}

export class FileActions {
  #undo = []; // ids of each deletion, the newest last

  // owner: {tree, files, loader, view, uploads, toast(text, options), changed(), reveal(path), open(node, how)}. asking:
  // {ask, confirm} of dialog.js.
  constructor(owner, asking = dialogs) {
    this.owner = owner;
    this.asking = asking;
    this.clipboard = null; // {paths, cut}
  }

  get files() {
    return this.owner.files;
  }

  // targetFolder returns the folder for new files.
  targetFolder() {
    const node = this.owner.tree.current();
    if (!node) return this.owner.tree.root;
    return node.folder && node.open ? node : node.parent;
  }

  // run runs act and shows its failure. what says what failed.
  async run(what, act) {
    try {
      return await act();
    } catch (err) {
      const problem = problemOf(err);
      this.owner.toast(`${what}: ${problem.message}`, { bad: true, action: problem.passing && { text: "Retry", act: () => this.run(what, act) } });
      return null;
    }
  }

  async #reload(...folders) {
    await Promise.all([...new Set(folders)].map((path) => this.owner.tree.find(path)).filter((n) => n?.children).map((n) => this.owner.loader.read(n)));
  }

  // create makes a file or a folder. Its name is typed in the tree.
  async create(kind, folder = this.targetFolder()) {
    await this.owner.show(folder);
    const draft = this.owner.tree.draft(folder, kind);
    this.owner.changed();
    this.owner.view.scrollTo();
    const taken = (value) => folder.children?.some((c) => c.key === encodeName(value));
    const name = await this.owner.view.edit(draft.path, "", (value) => nameFault(value.replaceAll("/", "x")) || (taken(value) ? "This name is already taken." : ""));
    this.owner.tree.drop(draft);
    this.owner.changed();
    if (!name) return;
    const path = join(folder.path, name.split("/").filter(Boolean).map(encodeName).join("/"));
    const deep = name.replace(/\/$/, "").includes("/");
    await this.run(`“${plainName(encodeName(name))}” could not be created`, async () => {
      if (kind === "folder") await this.files.mkdir(path, deep);
      else await this.files.write(path, new Uint8Array(), { fresh: true, parents: deep });
      await this.#reload(folder.path);
      await this.owner.reveal(path);
      if (kind === "file") this.owner.open(this.owner.tree.find(path), { pin: true });
    });
  }

  async rename(node) {
    const before = decodeText(node.key);
    const others = new Set(node.parent.children.filter((c) => c !== node).map((c) => c.key));
    const fault = (value) => nameFault(value) || (value.includes("/") ? "A name cannot contain a slash." : others.has(encodeName(value)) ? "This name is already taken." : "");
    const name = await this.owner.view.edit(node.path, before, fault);
    if (!name || name === before) return;
    const path = join(parentOf(node.path), encodeName(name));
    await this.run(`“${plainName(node.key)}” could not be renamed`, async () => {
      await this.#moveOne(node.path, path);
      await this.#reload(parentOf(node.path));
      await this.owner.reveal(path);
    });
  }

  async #moveOne(from, to) {
    await this.files.move([from], to);
    this.owner.moved(from, to);
  }

  async moveOrCopy(paths, folder, copy) {
    const from = topmost(paths).filter((p) => (copy || parentOf(p) !== folder) && !within(folder, p));
    if (!from.length) return;
    const moved = new Set(); // left out on a retry
    const tell = (path, to) => {
      moved.add(path);
      this.owner.moved(path, to);
    };
    await this.run(copy ? "Could not copy" : "Could not move", async () => {
      const left = from.filter((p) => !moved.has(p));
      const there = await this.#names(folder);
      const same = copy ? left.filter((p) => parentOf(p) === folder) : []; // a copy beside the original
      const taken = left.filter((p) => !same.includes(p) && there.has(baseOf(p)));
      const what = taken.length ? await this.#askTaken(taken, folder) : "replace";
      if (!what) return;
      const beside = what === "both" ? [...same, ...taken] : same;
      const plain = left.filter((p) => !beside.includes(p) && !(what === "skip" && taken.includes(p)));
      await this.#transfer({ plain, beside, folder, copy, replace: what === "replace" && taken.length > 0, there, tell: copy ? () => {} : tell });
      await this.#reload(folder, ...from.map(parentOf));
      announce(`${count(from.length, "item")} ${copy ? "copied" : "moved"}`);
    });
  }

  async #transfer({ plain, beside, folder, copy, replace, there, tell }) {
    const act = (paths, to) => (copy ? this.files.copy(paths, to, replace) : this.files.move(paths, to, replace));
    try {
      if (plain.length) await act(plain, folder);
    } catch (err) {
      if (!copy) await this.#reportMoved(plain, folder, tell);
      throw err;
    }
    for (const path of plain) tell(path, join(folder, baseOf(path)));
    for (const path of beside) {
      const name = freeName(baseOf(path), there);
      there.add(name);
      await act([path], join(folder, name));
      tell(path, join(folder, name));
    }
  }

  // #reportMoved reports which paths were moved before moving failed: those in the folder and no longer in their old one.
  async #reportMoved(paths, folder, tell) {
    try {
      const there = await this.#names(folder);
      const before = new Map();
      for (const parent of new Set(paths.map(parentOf))) before.set(parent, await this.#names(parent));
      for (const path of paths) if (there.has(baseOf(path)) && !before.get(parentOf(path)).has(baseOf(path))) tell(path, join(folder, baseOf(path)));
      await this.#reload(folder, ...before.keys());
    } catch {
      // the next refresh will show it
    }
  }

  // #names returns the names in a folder.
  async #names(folder) {
    let { entries, next } = await this.files.list(folder, { limit: 10_000 });
    while (next) {
      const page = await this.files.list(folder, { limit: 10_000, after: next });
      entries = entries.concat(page.entries);
      next = page.next;
    }
    return new Set(entries.map((e) => e.key));
  }

  // #displayName names a folder in a sentence.
  #displayName(folder) {
    return folder === this.files.home && !this.files.whole ? "~" : plainName(baseOf(folder)) || "/";
  }

  #askTaken(taken, folder) {
    const one = taken.length === 1;
    return this.asking.ask({
      title: one ? `“${plainName(baseOf(taken[0]))}” already exists` : `${taken.length} of the names already exist`,
      text: `In ${this.#displayName(folder)}. Replaced files cannot be restored. Folders that are not empty are never replaced.`,
      buttons: takenButtons,
    });
  }

  // askUpload asks what to do about an upload whose name is taken.
  async askUpload(upload, more) {
    const all = h("input", { type: "checkbox" });
    const body = more > 0 && h("label", { class: "ask-all" }, all, `Do this for all conflicts (${count(more, "file")} left)`);
    const what = await this.asking.ask({
      title: `“${plainName(baseOf(upload.path))}” already exists`, text: `In ${this.#displayName(parentOf(upload.path))}.`, body,
      buttons: takenButtons,
    });
    return { what: what || "skip", all: all.checked };
  }

  setClipboard(nodes, cut) {
    if (!nodes.length) return;
    this.clipboard = { paths: topmost(nodes.map((n) => n.path)), cut };
    this.owner.changed();
    announce(`${count(nodes.length, "item")} ${cut ? "cut" : "copied"}`);
  }

  async paste(folder = this.targetFolder()) {
    if (!this.clipboard) return;
    const { paths, cut } = this.clipboard;
    if (cut) this.clipboard = null;
    await this.moveOrCopy(paths, folder.path, !cut);
    this.owner.changed();
  }

  // remove moves files to the trash, with an undo. It asks only about those that cannot go there.
  async remove(nodes, permanent = false) {
    const paths = topmost(nodes.map((n) => n.path));
    if (!paths.length) return;
    if (permanent) return this.#deleteForGood(paths, nodes);
    let left = paths; // not yet in the trash; used on a retry
    await this.run(`${namesOf(paths)} could not be deleted`, async () => {
      const done = { gone: [], trashed: [], refused: new Map() };
      try {
        await this.#trash(left, done);
      } finally {
        left = left.filter((path) => !done.gone.includes(path));
        if (done.trashed.length) this.#undo.push(done.trashed.map((t) => t.id));
        await this.#removed(done.gone);
      }
      const told = done.gone.length > 0 && `${namesOf(done.gone)} moved to the trash`;
      const undo = done.trashed.length ? { text: "Undo", act: () => this.undo() } : null;
      if (told) this.owner.toast(told, { action: undo });
      const [why] = done.refused.values();
      if (why) await this.#deleteForGood([...done.refused.keys()], nodes, { why, told, undo });
    });
  }

  // #trash moves paths to the trash and records the result in done. A refusal of several does not say which one is to blame,
  // so each is then tried alone.
  async #trash(paths, done) {
    try {
      done.trashed.push(...((await this.files.remove(paths)) ?? []));
      done.gone.push(...paths);
    } catch (err) {
      const { status, message, trashed } = problemOf(err);
      const half = paths.filter((path) => trashed.some((t) => t.path === path));
      done.trashed.push(...trashed);
      done.gone.push(...half);
      if (status === 507) { // to move it there takes room, which deleting it gives
        for (const path of paths) if (!half.includes(path)) done.refused.set(path, "The sandbox's disk is full, so it cannot be moved to the trash.");
        return;
      }
      if (status !== 409) throw err;
      if (paths.length === 1) return done.refused.set(paths[0], message);
      for (const path of paths) if (!half.includes(path)) await this.#trash([path], done);
    }
  }

  // #deleteForGood asks, then deletes. why says why the trash is impossible; told and undo belong to what did go there.
  async #deleteForGood(paths, nodes, { why = "", told = "", undo = null } = {}) {
    const what = namesOf(paths);
    const reason = !why ? "" : paths.length === 1 ? `${why} ` : `${listed(paths)} cannot be moved to the trash. `;
    const folder = nodes.some((n) => paths.includes(n.path) && n.entry.type === "folder");
    const text = `${reason}${folder ? "Folders are deleted with everything in them. " : ""}This cannot be undone.`;
    if (!(await this.asking.confirm({ title: `Delete ${what} permanently?`, text, act: "Delete permanently" }))) return;
    await this.run(`${what} could not be deleted`, async () => {
      await this.files.remove(paths, true);
      await this.#removed(paths);
      this.owner.toast(`${what} permanently deleted${told ? `, ${told}` : ""}`, { action: undo });
    });
  }

  // #removed reports removed paths.
  async #removed(paths) {
    if (!paths.length) return;
    this.owner.gone(paths);
    await this.#reload(...paths.map(parentOf));
  }

  // undo restores the last deletion.
  async undo() {
    const ids = this.#undo.pop();
    if (!ids) return;
    await this.run("Could not restore", async () => {
      await this.files.restore(ids);
      this.owner.loader.reloadAll();
      this.owner.toast("Restored");
    });
  }

  get canUndo() {
    return this.#undo.length > 0;
  }

  // download lets the browser stream files, folders or a selection.
  async download(nodes, form = "zip") {
    const paths = topmost(nodes.map((n) => n.path));
    if (!paths.length) return;
    const node = nodes.find((n) => n.path === paths[0]);
    if (paths.length === 1 && !node.folder) return download(this.files.url(paths[0]), decodeText(baseOf(paths[0])));
    if (paths.length === 1 && !(await this.#isNamed(node))) return download(this.files.archive(paths[0], form));
    for (const folder of new Set(paths.map(parentOf))) download(this.files.archive(folder, form, paths.filter((p) => parentOf(p) === folder).map(baseOf)));
  }

  // #isNamed says whether a folder can be requested by name from its parent. A link would be archived as a link, and the
  // home and the root have no name.
  async #isNamed(node) {
    if (node.path === this.files.home || node.path === "/") return false;
    const { type } = node.parent ? node.entry : await this.files.stat(node.path).catch(() => ({})); // the root of the tree may be a link
    return type === "folder";
  }

  async properties(node) {
    if (await properties(this.files, node)) await this.#reload(parentOf(node.path));
  }

  async copyPath(nodes) {
    const text = nodes.map((n) => (isText(n.path) ? decodeText(n.path) : plainName(n.path))).join("\n");
    await copy(text);
    this.owner.toast(nodes.length === 1 ? "Path copied" : `${nodes.length} paths copied`);
  }
}
