// Drafts stores unsaved work in this browser, so that it survives reloads, crashes and closed tabs: per user, sandbox, path
// and window, the text and the version of the file that it is based on. A window finds its own drafts again and takes over
// those of closed windows; it never deletes those of a window that may be open. The store is bounded.
import { join, relative, within } from "../files/paths.js";
import { thisWindow } from "./windows.js";

const name = "sandboxd-drafts";
const table = "drafts";
export const maxLength = 2 << 20; // characters per draft
const most = 50; // drafts per browser
const oldest = 30 * 86_400_000; // ms

function promised(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

// expired returns the keys of drafts that are too old or too many.
export function expired(drafts, now) {
  const sorted = [...drafts].sort((a, b) => b.at - a.at);
  return sorted.filter((d, i) => i >= most || now - d.at > oldest).map((d) => d.key);
}

export class Drafts {
  #db = null;
  #copies = new Map(); // own key → {key, at} of a draft copied from a window that may be open

  // owner is the user and the sandbox. factory is indexedDB.
  constructor(owner, factory = globalThis.indexedDB, windows = thisWindow()) {
    this.owner = owner;
    this.factory = factory;
    this.windows = windows;
  }

  #open() {
    this.#db ??= new Promise((resolve, reject) => {
      const request = this.factory.open(name, 1);
      request.onupgradeneeded = () => request.result.createObjectStore(table, { keyPath: "key" });
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
      request.onblocked = () => reject(new Error("The browser's store is blocked."));
    });
    return this.#db;
  }

  async #table(mode) {
    const db = await this.#open();
    return db.transaction(table, mode).objectStore(table);
  }

  #key(path, window = this.windows.me) {
    return `${this.owner}\n${path}\n${window}`;
  }

  // #available returns the keys of drafts of this window and of closed windows: [{key, path, window}].
  #available(keys, others) {
    const all = keys.filter((key) => key.startsWith(`${this.owner}\n`)).map((key) => {
      const [path, window = ""] = key.slice(this.owner.length + 1).split("\n");
      return { key, path, window };
    });
    return all.filter((k) => !others?.has(k.window));
  }

  // put stores a draft: {text, etag, how}. It says whether that worked.
  async put(path, draft) {
    if (draft.text.length > maxLength) return false;
    try {
      const store = await this.#table("readwrite");
      await promised(store.put({ ...draft, key: this.#key(path), at: Date.now() }));
      await this.#deleteExpired();
      return true;
    } catch {
      return false; // private windows and full disks
    }
  }

  // get returns this window's draft, or else the newest one of a closed window, which this window takes over.
  async get(path) {
    try {
      const others = await this.windows.others();
      const store = await this.#table("readwrite");
      const own = await promised(store.get(this.#key(path)));
      if (own) return own;
      let newest = null;
      for (const { key } of this.#available(await promised(store.getAllKeys()), others).filter((k) => k.path === path)) {
        const row = await promised(store.get(key));
        if (row && !row.done && row.at > (newest?.at ?? 0)) newest = row;
      }
      if (newest) await this.#adopt(store, path, newest, others !== null);
      return newest;
    } catch {
      return null;
    }
  }

  async #adopt(store, path, row, gone) {
    const key = this.#key(path);
    await promised(store.put({ ...row, key }));
    if (gone) await promised(store.delete(row.key));
    else this.#copies.set(key, { key: row.key, at: row.at });
  }

  // drop deletes this window's draft. The original of a copied draft stays for its window, but is not offered to others
  // again until that window changes it.
  async drop(path) {
    try {
      const own = this.#key(path);
      const store = await this.#table("readwrite");
      await promised(store.delete(own));
      const copy = this.#copies.get(own);
      this.#copies.delete(own);
      const from = copy && (await promised(store.get(copy.key)));
      if (from && from.at === copy.at) await promised(store.put({ ...from, done: true }));
    } catch {
      // then it expires
    }
  }

  // move renames drafts with their file or folder. A draft of a replaced file stays, as one of a closed window, which is
  // offered when the path has no other draft.
  async move(from, to) {
    const now = Date.now();
    try {
      const others = await this.windows.others();
      const store = await this.#table("readwrite");
      const keys = await promised(store.getAllKeys());
      for (const { key, path, window } of this.#available(keys, others).filter((k) => within(k.path, from))) {
        const row = await promised(store.get(key));
        const there = this.#key(path === from ? to : join(to, relative(path, from)), window);
        if (!row || there === key) continue;
        const before = await promised(store.get(there));
        const goesOn = before?.at >= now; // the same work, saved under the new name meanwhile
        if (before && !goesOn) await promised(store.put({ ...before, key: `${there} ${before.at}` }));
        if (!goesOn) await promised(store.put({ ...row, key: there }));
        await promised(store.delete(key));
      }
    } catch {
      // nothing is stored, so there is nothing to move
    }
  }

  // paths returns the paths with drafts, except those that belong to other open windows.
  async paths() {
    try {
      const others = await this.windows.others();
      const rows = await promised((await this.#table("readonly")).getAll());
      const keys = rows.filter((row) => !row.done || row.key.endsWith(`\n${this.windows.me}`)).map((row) => row.key);
      return [...new Set(this.#available(keys, others).map((k) => k.path))];
    } catch {
      return [];
    }
  }

  async #deleteExpired() {
    const store = await this.#table("readwrite");
    const all = await promised(store.getAll());
    for (const key of expired(all, Date.now())) store.delete(key);
  }
}
