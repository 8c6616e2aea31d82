// Uploads is the queue of files on their way into a sandbox. Large ones go in pieces and go on where they were after a
// lost connection, and after a reload once the person has chosen the same file again. What another window is sending is
// that one's: it is not shown, gone on with or abandoned here. It draws nothing.
import { delayAfter } from "../js/reconnect.js";
import { readJSON, writeJSON } from "../js/storage.js";
import { Problem, problemOf } from "./api.js";
import { baseOf, freeName, join, parentOf } from "./paths.js";

export const piece = 8 << 20; // bytes of a piece; smaller files go whole
const atOnce = 3;
const tries = 8; // failures in a row before a person is asked
const backoff = { first: 1000, longest: 30_000, chance: 1 };

// States of an upload: "waiting" (for its turn), "sending", "asking" (the name is taken), "broken" (tries again soon),
// "failed" (problem says why; retry() tries again), "missing" (begun before the page was loaded; needs its file), "done".
export class Uploads {
  #choice = ""; // for all that meet a file that is there
  #asking = Promise.resolve();
  #last = 0;

  // options: owner, a name for whose uploads are kept · send(request) as in send.js · ask(upload, more) gives {what: "replace" | "both" | "skip", all} · changed() ·
  // arrived(path) · store (of Storage's kind, or null) · locks (navigator.locks, which plain HTTP has not) · wait(ms, signal)
  constructor(files, options) {
    this.files = files;
    Object.assign(this, options);
    this.list = [];
    this.store ??= null;
    this.locks ??= null;
    this.#recall();
  }

  get running() {
    return this.list.filter((u) => ["sending", "broken", "asking"].includes(u.state));
  }

  get open() {
    return this.list.filter((u) => !["done", "failed", "missing"].includes(u.state));
  }

  // fragile says whether something is open that a reload would lose: what goes whole.
  get fragile() {
    return this.open.some((u) => u.size <= piece);
  }

  // add takes in files: [{file, path}], where path is where the file goes. Folders without files: {path}.
  add(items) {
    if (!this.open.length) {
      this.#choice = "";
      this.list = this.list.filter((u) => u.state !== "done");
    }
    const missing = this.list.filter((u) => u.state === "missing");
    for (const { file, path } of items) {
      const before = file && missing.find((u) => u.path === path && isSame(u, file));
      if (before) Object.assign(before, { file, state: "waiting" });
      else this.list.push(this.#make(file, path));
    }
    this.#turn();
  }

  // adopt gives an upload of an earlier page its file. It says whether it is the same file.
  adopt(upload, file) {
    if (!isSame(upload, file)) return false;
    Object.assign(upload, { file, state: "waiting", problem: null });
    this.#turn();
    return true;
  }

  retry(upload) {
    Object.assign(upload, { state: "waiting", problem: null, failures: 0 });
    this.#turn();
  }

  // cancel ends an upload and forgets what has arrived of it, unless another window goes on with it.
  cancel(upload) {
    upload.away.abort();
    this.list = this.list.filter((u) => u !== upload);
    if (upload.id && upload.state !== "done") this.#abandon(upload);
    this.#turn();
  }

  cancelAll() {
    for (const u of [...this.list]) if (u.state !== "missing" && u.state !== "done") this.cancel(u);
  }

  clear() {
    this.list = this.list.filter((u) => u.state !== "done");
    this.changed();
  }

  // total says how far all of it is.
  total() {
    const counted = this.list.filter((u) => !["missing", "failed"].includes(u.state));
    return {
      files: counted.length, done: counted.filter((u) => u.state === "done").length,
      bytes: counted.reduce((sum, u) => sum + u.size, 0), sent: counted.reduce((sum, u) => sum + u.sent, 0),
    };
  }

  #make(file, path, id = "") {
    return {
      n: ++this.#last, file, path, id, size: file?.size ?? 0, modified: file?.lastModified ?? 0, folder: !file,
      sent: 0, state: "waiting", problem: null, failures: 0, away: new AbortController(), replace: false,
    };
  }

  #turn() {
    this.changed();
    let free = atOnce - this.list.reduce((n, u) => n + (u.state === "sending" ? 1 : 0), 0);
    for (let i = 0; free > 0 && i < this.list.length; i++) {
      if (this.list[i].state !== "waiting") continue;
      this.#run(this.list[i]);
      free--;
    }
  }

  async #run(upload) {
    upload.state = "sending";
    upload.away = new AbortController();
    const { signal } = upload.away;
    try {
      while (!(await this.#attempt(upload, signal)));
      if (upload.state === "skipped") this.list = this.list.filter((u) => u !== upload);
      else Object.assign(upload, { state: "done", sent: upload.size });
      this.#forget(upload);
      if (upload.state === "done") this.arrived(upload.path);
    } catch (err) {
      if (signal.aborted) return;
      Object.assign(upload, { state: "failed", problem: problemOf(err) });
    } finally {
      upload.release?.();
      upload.release = null;
    }
    this.#turn();
  }

  // #attempt sends the upload or finds out why not. It gives whether it is over; what cannot be mended is thrown.
  async #attempt(upload, signal) {
    try {
      if (upload.folder) await this.files.mkdir(upload.path, true).catch(allowTaken);
      else if (upload.size <= piece) await this.#whole(upload, signal);
      else await this.#pieces(upload, signal);
      return true;
    } catch (err) {
      const problem = problemOf(err);
      if (signal.aborted) throw problem;
      if (problem.taken) return this.#taken(upload);
      if (!problem.passing || ++upload.failures >= tries) throw problem;
      Object.assign(upload, { state: "broken", problem });
      this.changed();
      await this.wait(delayAfter(upload.failures - 1, backoff), signal);
      Object.assign(upload, { state: "sending", problem: null });
      this.changed();
      return false;
    }
  }

  async #whole(upload, signal) {
    const headers = upload.replace ? {} : { "If-None-Match": "*" };
    const answer = await this.#put(upload, this.files.url(upload.path, { parents: "true" }), headers, upload.file, 0, signal);
    if (!upload.replace && (answer.status === 412 || answer.status === 409)) throw takenProblem();
    insist(answer);
  }

  async #pieces(upload, signal) {
    if (!upload.id) {
      if (!upload.replace && (await this.#exists(upload.path))) throw takenProblem();
      upload.id = uploadId();
    }
    await this.#hold(upload);
    this.#remember(upload);
    let at = await this.#offset(upload, signal);
    for (let stuck = 0; ; ) {
      const end = Math.min(at + piece, upload.size);
      const part = at < end ? `${at}-${end - 1}` : "*"; // all is there, and only its name is missing
      const headers = { "Content-Range": `bytes ${part}/${upload.size}` };
      if (!upload.replace) headers["If-None-Match"] = "*";
      const url = this.files.url(upload.path, { upload: upload.id, parents: "true" });
      const answer = await this.#put(upload, url, headers, upload.file.slice(at, end), at, signal);
      if (answer.status === 412) throw takenProblem();
      if (answer.status === 409 && ++stuck < 3) {
        at = await this.#offset(upload, signal);
        continue;
      }
      insist(answer);
      if (answer.status !== 202) return;
      at = Number(JSON.parse(answer.body).offset);
      upload.failures = stuck = 0;
    }
  }

  async #offset(upload, signal) {
    const { offset } = await this.files.json(this.files.url(upload.path, { upload: upload.id }), { signal }).catch((err) => {
      if (err.status === 404) return { offset: 0 };
      throw err;
    });
    upload.sent = offset;
    return offset;
  }

  async #put(upload, url, headers, body, from, signal) {
    const answer = await this.send({
      url, headers: { "Content-Type": "application/octet-stream", ...headers }, body, signal,
      progress: (sent) => {
        upload.sent = from + sent;
        this.changed();
      },
    });
    return answer;
  }

  async #exists(path) {
    return this.files.stat(path).then(() => true, (err) => {
      if (err.status === 404) return false;
      throw err;
    });
  }

  // #taken asks what to do about a file that is there already, one question at a time.
  async #taken(upload) {
    upload.state = "asking";
    this.changed();
    const mine = this.#asking.then(() => this.#decide(upload));
    this.#asking = mine.catch(() => {});
    const what = await mine;
    if (what === "skip") {
      upload.state = "skipped";
      return true;
    }
    if (what === "replace") upload.replace = true;
    else upload.path = await this.#beside(upload.path);
    upload.state = "sending";
    return false;
  }

  async #decide(upload) {
    if (upload.away.signal.aborted) return "skip";
    if (this.#choice) return this.#choice;
    const { what, all } = await this.ask(upload, this.list.filter((u) => ["waiting", "sending", "asking"].includes(u.state)).length - 1);
    if (all) this.#choice = what;
    return what;
  }

  // #beside gives the path of a name that is free.
  async #beside(path) {
    const folder = parentOf(path);
    const taken = new Set([baseOf(path)]);
    for (;;) {
      const name = freeName(baseOf(path), taken);
      if (!(await this.#exists(join(folder, name)))) return join(folder, name);
      taken.add(name);
    }
  }

  // #hold keeps other windows away from an upload until it is released.
  #hold(upload) {
    if (!this.locks || upload.release) return null;
    return new Promise((held, refused) => {
      this.locks.request(lockOf(upload), { ifAvailable: true }, (lock) => {
        if (!lock) return refused(new Problem(409, "elsewhere", "Another window is sending this file."));
        return new Promise((release) => {
          upload.release = release;
          held();
        });
      }).catch(refused);
    });
  }

  // #abandon forgets an upload and what has arrived of it, if it is this window's.
  #abandon(upload) {
    const remove = () => {
      this.#forget(upload);
      return this.#remove(upload);
    };
    if (upload.release) remove();
    else if (this.locks) this.locks.request(lockOf(upload), { ifAvailable: true }, (lock) => lock && remove()).catch(() => {});
    else if (upload.state === "missing") this.#forget(upload); // it may be another window's
    else remove();
  }

  // #remove removes what has arrived, which is refused as long as the piece that was on its way is still being taken.
  async #remove(upload) {
    for (let i = 0; i < tries; i++) {
      try {
        return await this.files.json(this.files.url(upload.path, { upload: upload.id }), { method: "DELETE" });
      } catch (err) {
        if (err.status !== 409) return null; // it is swept after a day
      }
      await this.wait(100 * 2 ** i, new AbortController().signal);
    }
    return null;
  }

  // What is under way is kept, so that a page that is loaded anew can go on with it.
  #remember(upload) {
    const { id, path, size, modified } = upload;
    this.#write([...this.#read().filter((r) => r.id !== id), { id, path, size, modified, at: Date.now() }].slice(-50));
  }

  #forget(upload) {
    if (upload.id) this.#write(this.#read().filter((r) => r.id !== upload.id));
  }

  #read() {
    return readJSON(this.store, this.storeKey, []).filter((r) => Date.now() - r.at < 86_400_000);
  }

  #write(records) {
    writeJSON(this.store, this.storeKey, records.length ? records : undefined);
  }

  get storeKey() {
    return `uploads ${this.owner}`;
  }

  #recall() {
    for (const record of this.#read()) {
      if (this.locks) this.locks.request(lockOf(record), () => this.#miss(record)).catch(() => {}); // once no window sends it
      else this.#miss(record);
    }
  }

  #miss({ id, path, size, modified }) {
    if (this.list.some((u) => u.id === id) || !this.#read().some((r) => r.id === id)) return;
    this.list.push({ ...this.#make(null, path, id), folder: false, size, modified, state: "missing" });
    this.changed();
  }
}

// isSame says whether a file is the one that an upload was begun with.
export function isSame(upload, file) {
  return upload.size === file.size && upload.modified === file.lastModified;
}

function lockOf({ id }) {
  return `upload ${id}`;
}

function takenProblem() {
  return Object.assign(new Problem(412, "taken", "There is a file of this name already."), { taken: true });
}

function allowTaken(err) {
  if (err.status !== 409) throw err;
}

function insist(answer) {
  if (answer.status < 200 || answer.status > 299) throw answer.problem;
}

function uploadId() {
  const bytes = crypto.getRandomValues(new Uint8Array(15));
  return Array.from(bytes, (b) => b.toString(36).padStart(2, "0")).join("");
}
