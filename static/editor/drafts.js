// Drafts keeps unsaved work in this browser, so that a reload, a crash or a closed tab does not lose it: for each person,
// sandbox and path the text and the version of the file that it began with. What it keeps is bounded.

const name = "sandboxd-drafts";
const table = "drafts";
export const longest = 2 << 20; // characters of a draft
const most = 50; // drafts of one browser
const oldest = 30 * 86_400_000; // ms

function promised(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

// surplus gives the keys of the drafts to drop, so that not too many and no old ones stay.
export function surplus(drafts, now) {
  const sorted = [...drafts].sort((a, b) => b.at - a.at);
  return sorted.filter((d, i) => i >= most || now - d.at > oldest).map((d) => d.key);
}

export class Drafts {
  #db = null;

  // owner names the person and the sandbox. factory is indexedDB.
  constructor(owner, factory = globalThis.indexedDB) {
    this.owner = owner;
    this.factory = factory;
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

  #key(path) {
    return `${this.owner}\n${path}`;
  }

  // put keeps a draft: {text, etag, how}. It says whether it is kept.
  async put(path, draft) {
    if (draft.text.length > longest) return false;
    try {
      const store = await this.#table("readwrite");
      await promised(store.put({ ...draft, key: this.#key(path), at: Date.now() }));
      await this.#tidy();
      return true;
    } catch {
      return false; // private windows, and browsers whose disk is full, keep nothing
    }
  }

  async get(path) {
    try {
      return (await promised((await this.#table("readonly")).get(this.#key(path)))) ?? null;
    } catch {
      return null;
    }
  }

  async drop(path) {
    try {
      await promised((await this.#table("readwrite")).delete(this.#key(path)));
    } catch {
      // then it goes by its age
    }
  }

  // paths are those that there is unsaved work of.
  async paths() {
    try {
      const keys = await promised((await this.#table("readonly")).getAllKeys());
      return keys.filter((k) => k.startsWith(`${this.owner}\n`)).map((k) => k.slice(this.owner.length + 1));
    } catch {
      return [];
    }
  }

  async #tidy() {
    const store = await this.#table("readwrite");
    const all = await promised(store.getAll());
    for (const key of surplus(all, Date.now())) store.delete(key);
  }
}
