// Watch is the page's one channel for changed folders. Whoever shows a folder wants it watched; the channel is opened anew
// when what is wanted changes, closed while nobody can see it, and never wakes a sandbox.
import { delayAfter } from "../js/reconnect.js";
import { debounce } from "../js/timers.js";

const most = 64; // folders that sandboxd watches for one channel
const settle = 250; // ms that wishes are collected
const backoff = { first: 1000, longest: 60_000 }; // ms before an ended channel is reopened

// chosen picks the folders to watch: what comes first in each wish counts most.
export function chosen(wishes, limit = most) {
  const lists = [...wishes];
  const out = new Set();
  for (let i = 0; out.size < limit && lists.some((l) => i < l.length); i++) {
    for (const list of lists) if (i < list.length && out.size < limit) out.add(list[i]);
  }
  return [...out].sort();
}

export class Watch {
  #wishes = new Map(); // owner → {folders, changed}
  #channel = null;
  #before = null; // which goes on until #channel watches
  #watched = "";
  #sure = false; // #channel watches, and has done so without a cut
  #failures = 0;
  #timer = 0;
  #on = true;

  constructor(files) {
    this.files = files;
    this.soon = debounce(() => this.#apply(), settle);
  }

  // want says which folders owner shows; changed(folder) is called for these. What may have changed while there was no
  // channel counts as changed.
  want(owner, folders, changed) {
    this.#wishes.set(owner, { folders, changed });
    this.soon();
  }

  drop(owner) {
    this.#wishes.delete(owner);
    this.soon();
  }

  // run says whether there is anybody to tell and a sandbox to ask.
  run(on) {
    if (this.#on === on) return;
    this.#on = on;
    this.#failures = 0;
    this.soon();
  }

  get watched() {
    return this.#watched ? this.#watched.split("\n") : [];
  }

  #apply() {
    const wanted = this.#on ? chosen([...this.#wishes.values()].map((w) => w.folders)) : [];
    const key = wanted.join("\n");
    if (key === this.#watched && (this.#channel || !key)) return;
    if (!key) return this.#close();
    const known = new Set(this.#channel && this.#sure ? this.watched : []);
    clearTimeout(this.#timer);
    this.#before?.close();
    this.#before = this.#channel;
    this.#watched = key;
    this.#open(wanted, known);
  }

  // #open begins a channel. sandboxd tells of each folder when it is watched; known ones have been all along, by the channel
  // before, which ends then.
  #open(folders, known) {
    const channel = this.files.watch(folders);
    const fresh = new Set(folders);
    this.#channel = channel;
    this.#sure = false;
    channel.addEventListener("lost", () => {
      known.clear(); // what has changed until it is back nobody knows
      if (this.#channel === channel) this.#sure = false;
    });
    channel.addEventListener("changed", (event) => {
      const path = this.#read(event.data);
      if (this.#channel === channel) this.#sure = true;
      this.#failures = 0;
      this.#before?.close();
      if (!(fresh.delete(path) && known.has(path))) this.#tell(path);
    });
    channel.addEventListener("ended", () => {
      if (this.#channel === channel) this.#again();
    });
  }

  // #again opens the channel later, and later each time.
  #again() {
    this.#close();
    this.#timer = setTimeout(() => this.#apply(), delayAfter(this.#failures++, backoff));
  }

  #close() {
    clearTimeout(this.#timer);
    this.#channel?.close();
    this.#before?.close();
    this.#channel = this.#before = null;
    this.#watched = "";
  }

  #read(data) {
    try {
      return this.files.pathOf(JSON.parse(data));
    } catch {
      return "";
    }
  }

  #tell(path) {
    for (const { folders, changed } of [...this.#wishes.values()]) if (folders.includes(path)) changed(path);
  }
}
