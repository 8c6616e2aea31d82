// The names of a sandbox's files, for quick open: they are read once and searched here, so that each key answers at once. An older
// list is shown while a newer one is read.
import fuzzysort from "fuzzysort";
import { problemOf } from "../files/api.js";
import { canonical, encodeName } from "../files/paths.js";

const fresh = 10_000; // ms during which a list is not read again
const most = 1000; // results of one kind

// Names are paths relative to the home, with their lower-case forms.
export class Names {
  paths = [];
  #lower = [];
  #encoded = new Map(); // paths that are not text, by index

  // home is an encoded path.
  constructor(home) {
    this.home = home;
  }

  // add takes the files of a folder: {folder, folder_encoded, names, encoded}. Names and a folder that are not text come encoded.
  add({ folder, folder_encoded, names = [], encoded = [] }) {
    const top = decodeLoosely(this.home);
    const prefix = folder === top ? "" : `${folder.startsWith(`${top}/`) ? folder.slice(top.length + 1) : folder}/`;
    const at = canonical(folder_encoded ?? folder.split("/").map(encodeName).join("/"));
    for (const name of names) this.#push(prefix + name, folder_encoded && `${at}/${encodeName(name)}`);
    for (const name of encoded) this.#push(prefix + decodeLoosely(name), `${at}/${canonical(name)}`);
  }

  #push(path, encoded) {
    if (encoded) this.#encoded.set(this.paths.length, encoded);
    this.paths.push(path);
    this.#lower.push(path.toLowerCase());
  }

  get size() {
    return this.paths.length;
  }

  // encodedOf returns the encoded absolute path.
  encodedOf(i) {
    return this.#encoded.get(i) ?? `${this.home}/${this.paths[i].split("/").map(encodeName).join("/")}`;
  }

  // find returns the indexes of the best matches of a query, in order. Names come before paths, beginnings before middles, and
  // letters that are only in order come last; among equals the nearest comes first, as the list has it.
  find(query, limit) {
    const wanted = query.toLowerCase().replace(/\s+/g, "");
    const kinds = [[], [], [], [], [], []];
    if (!wanted) return this.paths.slice(0, limit).map((_, i) => i);
    for (let i = 0; i < this.#lower.length && kinds[0].length < limit; i++) {
      const kind = kindOf(this.#lower[i], wanted);
      if (kind >= 0 && kinds[kind].length < most) kinds[kind].push(i);
    }
    return [...kinds.slice(0, 4).flat(), ...this.#rank(wanted, [...kinds[4], ...kinds[5]], limit)].slice(0, limit);
  }

  // #rank sorts those in which the letters are only in order.
  #rank(wanted, list, limit) {
    return fuzzysort.go(wanted, list.map((i) => ({ i, path: this.paths[i] })), { key: "path", limit }).map(({ obj }) => obj.i);
  }
}

// kindOf says how a path matches: 0 best, -1 not.
function kindOf(path, wanted) {
  const start = path.lastIndexOf("/") + 1;
  const at = path.indexOf(wanted, start);
  if (at === start) return path.length === start + wanted.length ? 0 : 1;
  if (at > start) return 2;
  if (path.includes(wanted)) return 3;
  if (inOrder(path, wanted, start)) return 4;
  return inOrder(path, wanted, 0) ? 5 : -1;
}

function inOrder(path, wanted, from) {
  for (let i = 0, at = from; i < wanted.length; i++, at++) {
    at = path.indexOf(wanted[i], at);
    if (at < 0) return false;
  }
  return true;
}

// marks returns the indexes of the letters of a path that a query matches, for display.
export function marks(path, query) {
  const wanted = query.toLowerCase().replace(/\s+/g, "");
  const lower = path.toLowerCase();
  const start = lower.lastIndexOf("/") + 1;
  const whole = [lower.indexOf(wanted, start), lower.indexOf(wanted)].find((at) => at >= 0);
  if (whole !== undefined) return [...wanted].map((_, i) => whole + i);
  const from = inOrder(lower, wanted, start) ? start : 0;
  const out = [];
  for (let i = 0, at = from; i < wanted.length; i++, at++) out.push((at = lower.indexOf(wanted[i], at)));
  return out.includes(-1) ? [] : out;
}

function decodeLoosely(encoded) {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded.replace(/%[0-9a-f]{2}/gi, "\ufffd");
  }
}

// FileNames keeps the list of one sandbox.
export class FileNames {
  more = false; // files are missing
  partial = false; // the first list is being read
  problem = null;
  #reading = null;
  #read = -Infinity; // when

  // files: a Files. changed() is called as names arrive.
  constructor(files, now = () => Date.now()) {
    Object.assign(this, { files, now, names: new Names(files.home), changed: () => {} });
  }

  // refresh reads the list unless it is fresh.
  refresh() {
    if (this.#reading || this.now() - this.#read < fresh) return this.#reading;
    this.#reading = this.#load().finally(() => {
      this.#reading = null;
      this.partial = false;
      this.changed();
    });
    return this.#reading;
  }

  async #load() {
    const names = new Names(this.files.home);
    this.partial = !this.names.size;
    if (this.partial) this.names = names; // the first ones show as they arrive
    try {
      for await (const line of this.files.names()) {
        if (line.problem) throw Object.assign(new Error(line.problem.detail), { status: line.problem.status });
        if (line.end) this.more = line.more;
        else names.add(line);
        if (this.names === names) this.changed();
      }
      Object.assign(this, { names, problem: null });
      this.#read = this.now();
    } catch (err) {
      this.problem = problemOf(err);
    }
  }
}
