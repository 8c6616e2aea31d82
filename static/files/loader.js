// Loader fetches folders for a Tree: when they are opened, further pages, and changes.
import { problemOf } from "./api.js";
import { throttle } from "../js/timers.js";
import { within } from "./paths.js";

const firstPage = 1000; // entries; enough to fill the screen, and quick
const nextPages = 10_000;
const maxEntries = 100_000; // of one folder; the search finds the others
const slow = 150; // ms before loading is shown
const collect = 200; // ms in which changes are collected
const pause = 500; // ms between two reads of a folder that keeps changing
const perEntry = 0.2; // ms more per entry

export class Loader {
  #pending = new Map(); // path → promise
  #stale = new Set();
  #notBefore = new Map(); // path → earliest time of the next read

  // owner: {tree, files, changed()}
  constructor(owner) {
    this.owner = owner;
    this.updateSoon = throttle(() => this.#update(), collect);
  }

  // open reads a folder unless it has been read.
  async open(node) {
    if (node.children && node.state !== "error") return;
    await this.read(node);
  }

  // read reads a folder, again if necessary, with as many entries as before. quiet marks automatic reads.
  read(node, quiet = false) {
    const pending = this.#pending.get(node.path);
    if (pending) return pending;
    const mine = this.#read(node, quiet).finally(() => this.#pending.delete(node.path));
    this.#pending.set(node.path, mine);
    return mine;
  }

  async #read(node, quiet) {
    const { tree, files } = this.owner;
    const had = node.children?.length ?? 0;
    node.state = node.children ? node.state : "loading";
    tree.flatten();
    this.owner.changed();
    const waits = setTimeout(() => {
      if (!node.children) node.state = "slow";
      tree.flatten();
      this.owner.changed();
    }, slow);
    try {
      const { entries, next } = await this.#pages(files, node.path, Math.min(had, maxEntries), quiet);
      clearTimeout(waits);
      tree.fill(node, entries, { next, most: maxEntries });
    } catch (err) {
      clearTimeout(waits);
      const problem = problemOf(err);
      if (problem.code === "left") return;
      if (node.children && (quiet || problem.passing) && problem.status !== 404) return; // keep showing the known entries
      tree.fail(node, problem);
    }
    this.#notBefore.set(node.path, Date.now() + Math.max(pause, (node.children?.length ?? 0) * perEntry));
    this.owner.changed();
  }

  async #pages(files, path, least, quiet) {
    let { entries, next } = await files.list(path, { limit: least > firstPage ? nextPages : firstPage, quiet });
    while (next && entries.length < least) {
      const page = await files.list(path, { after: next, limit: nextPages, quiet });
      entries = entries.concat(page.entries);
      next = page.next;
    }
    return { entries, next };
  }

  // more reads the next page of a long folder.
  async more(node) {
    if (!node.next || node.fetching) return;
    node.fetching = true;
    try {
      const page = await this.owner.files.list(node.path, { after: node.next, limit: nextPages });
      this.owner.tree.fill(node, page.entries, { next: page.next, append: true, most: maxEntries });
    } catch (err) {
      this.owner.tree.fail(node, problemOf(err));
    }
    node.fetching = false;
    this.owner.changed();
  }

  // changed marks a folder as outdated. It is read again soon if the tree is visible.
  changed(path) {
    this.#stale.add(path);
    this.updateSoon();
  }

  // reloadAll does so for all open folders.
  reloadAll() {
    for (const node of this.owner.tree.openFolders()) this.#stale.add(node.path);
    this.updateSoon();
  }

  // resume reads what changed while the tree was not visible.
  resume() {
    if (this.#stale.size) this.updateSoon();
  }

  #update() {
    if (!this.owner.visible()) return;
    const now = Date.now();
    let again = 0;
    for (const path of [...this.#stale]) {
      const left = (this.#notBefore.get(path) ?? 0) - now;
      if (left > 0) {
        again = Math.min(again || left, left);
        continue;
      }
      this.#stale.delete(path);
      const node = this.owner.tree.find(path);
      if (node?.children && (node.open || node === this.owner.tree.root)) this.read(node, true);
      else if (node) node.children = null;
    }
    if (again) setTimeout(() => this.updateSoon(), again);
  }

  // reveal opens the folders above path and returns its node, or null when it is not there.
  async reveal(path) {
    const { tree } = this.owner;
    if (!within(path, tree.root.path)) return null;
    let node = tree.root;
    while (node.path !== path) {
      await this.open(node);
      node.open = true;
      let next = step(node, path);
      while (!next && node.next) {
        await this.more(node);
        next = step(node, path);
      }
      if (!next) return null;
      node = next;
    }
    tree.flatten();
    return node;
  }
}

function step(node, path) {
  return node.children?.find((c) => within(path, c.path)) ?? null;
}

