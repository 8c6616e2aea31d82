// Watch is the page's one channel for changed folders. It is reopened when the set of watched folders changes, and closed
// while the page is not visible. It never wakes a sandbox.
import { delayAfter } from "../js/reconnect.js";
import { debounce } from "../js/timers.js";

const limit = 64; // folders per channel, as in sandboxd
const settle = 250; // ms in which changes to the set are collected
const backoff = { first: 1000, longest: 60_000 }; // ms before an ended channel is reopened

// fairShare picks the folders to watch: from each list in turn, the first ones first.
export function fairShare(lists, most = limit) {
  const out = new Set();
  for (let i = 0; out.size < most && lists.some((l) => i < l.length); i++) {
    for (const list of lists) if (i < list.length && out.size < most) out.add(list[i]);
  }
  return [...out].sort();
}

export class Watch {
  #wanted = new Map(); // owner → {folders, changed}
  #channel = null;
  #previous = null; // stays open until #channel watches
  #key = "";
  #complete = false; // #channel has watched without interruption
  #failures = 0;
  #timer = 0;
  #on = true;

  constructor(files) {
    this.files = files;
    this.applySoon = debounce(() => this.#apply(), settle);
  }

  // want sets the folders that owner shows; changed(folder) is called for them. After an interruption all count as changed.
  want(owner, folders, changed) {
    this.#wanted.set(owner, { folders, changed });
    this.applySoon();
  }

  drop(owner) {
    this.#wanted.delete(owner);
    this.applySoon();
  }

  // run turns watching on or off.
  run(on) {
    if (this.#on === on) return;
    this.#on = on;
    this.#failures = 0;
    this.applySoon();
  }

  get watched() {
    return this.#key ? this.#key.split("\n") : [];
  }

  #apply() {
    const wanted = this.#on ? fairShare([...this.#wanted.values()].map((w) => w.folders)) : [];
    const key = wanted.join("\n");
    if (key === this.#key && (this.#channel || !key)) return;
    if (!key) return this.#close();
    const known = new Set(this.#channel && this.#complete ? this.watched : []);
    clearTimeout(this.#timer);
    this.#previous?.close();
    this.#previous = this.#channel;
    this.#key = key;
    this.#open(wanted, known);
  }

  // #open opens a channel. sandboxd reports each folder once when watching begins; for known folders, which the previous
  // channel watched until then, that is not a change.
  #open(folders, known) {
    const channel = this.files.watch(folders);
    const fresh = new Set(folders);
    this.#channel = channel;
    this.#complete = false;
    channel.addEventListener("lost", () => {
      known.clear(); // changes during the interruption are unknown
      if (this.#channel === channel) this.#complete = false;
    });
    channel.addEventListener("changed", (event) => {
      const path = this.#read(event.data);
      if (this.#channel === channel) this.#complete = true;
      this.#failures = 0;
      this.#previous?.close();
      if (!(fresh.delete(path) && known.has(path))) this.#notify(path);
    });
    channel.addEventListener("ended", () => {
      if (this.#channel === channel) this.#reopenLater();
    });
  }

  // #reopenLater reopens the channel with backoff.
  #reopenLater() {
    this.#close();
    this.#timer = setTimeout(() => this.#apply(), delayAfter(this.#failures++, backoff));
  }

  #close() {
    clearTimeout(this.#timer);
    this.#channel?.close();
    this.#previous?.close();
    this.#channel = this.#previous = null;
    this.#key = "";
  }

  #read(data) {
    try {
      return this.files.pathOf(JSON.parse(data));
    } catch {
      return "";
    }
  }

  #notify(path) {
    for (const { folders, changed } of [...this.#wanted.values()]) if (folders.includes(path)) changed(path);
  }
}

const watches = new Map(); // by the files' address

// watchOf returns the page's Watch of a sandbox, which the tree and the editor share.
export function watchOf(files) {
  if (!watches.has(files.base)) watches.set(files.base, new Watch(files));
  return watches.get(files.base);
}
