// Uploads is the upload queue. Large files are sent in pieces and resume after a lost connection, and after a reload once
// the user has chosen the same file again. Uploads of other windows are neither shown, continued nor cancelled here. No DOM
// in here.
import { delayAfter } from "../js/reconnect.js";
import { readJSON, writeJSON } from "../js/storage.js";
import { Problem, problemOf } from "./api.js";
import { baseOf, freeName, join, parentOf } from "./paths.js";

export const piece = 8 << 20; // bytes; smaller files are sent in one request
const atOnce = 3;
const tries = 8; // consecutive failures before giving up
const backoff = { first: 1000, longest: 30_000, chance: 1 };

// States of an upload: "waiting" (queued), "sending", "asking" (the name is taken), "broken" (retries soon), "failed" (see
// problem; retry() tries again), "missing" (from an earlier page load; needs its file), "done".
export class Uploads {
  #choice = ""; // the user's choice for all name conflicts
  #asking = Promise.resolve();
  #last = 0;

  // options: owner (key of browser storage), send(request) as in upload_request.js, ask(upload, more) → {what: "replace" |
  // "both" | "skip", all}, changed(), arrived(path), store (a Storage, or null), locks (navigator.locks, missing without
  // HTTPS), wait(ms, signal).
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

  // fragile says whether a reload would lose an upload: files sent in one request cannot resume.
  get fragile() {
    return this.open.some((u) => u.size <= piece);
  }

  // add queues files: [{file, path}], where path is the target. Folders have no file.
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

  // adopt gives an upload from an earlier page load its file. It says whether the file is the same.
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

  // cancel removes an upload and what the server has of it, unless another window continues it.
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

  // total sums up the progress.
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

  // #attempt tries to send the upload and says whether it is over. It throws failures that a retry cannot fix.
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
      const part = at < end ? `${at}-${end - 1}` : "*"; // everything was sent, only the file's name is missing
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

  // #taken asks about a name conflict, one question at a time.
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

  // #beside returns a free path in the same folder.
  async #beside(path) {
    const folder = parentOf(path);
    const taken = new Set([baseOf(path)]);
    for (;;) {
      const name = freeName(baseOf(path), taken);
      if (!(await this.#exists(join(folder, name)))) return join(folder, name);
      taken.add(name);
    }
  }

  // #hold locks an upload against other windows.
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

  // #abandon forgets an upload and deletes its pieces, unless another window has it.
  #abandon(upload) {
    const remove = () => {
      this.#forget(upload);
      return this.#remove(upload);
    };
    if (upload.release) remove();
    else if (this.locks) this.locks.request(lockOf(upload), { ifAvailable: true }, (lock) => lock && remove()).catch(() => {});
    else if (upload.state === "missing") this.#forget(upload); // another window may have it
    else remove();
  }

  // #remove deletes the pieces. The server refuses while the last one is still being written.
  async #remove(upload) {
    for (let i = 0; i < tries; i++) {
      try {
        return await this.files.json(this.files.url(upload.path, { upload: upload.id }), { method: "DELETE" });
      } catch (err) {
        if (err.status !== 409) return null; // the server deletes it after a day
      }
      await this.wait(100 * 2 ** i, new AbortController().signal);
    }
    return null;
  }

  // Active uploads are stored, so that they can resume after a reload.
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
      if (this.locks) this.locks.request(lockOf(record), () => this.#miss(record)).catch(() => {}); // when no window sends it any more
      else this.#miss(record);
    }
  }

  #miss({ id, path, size, modified }) {
    if (this.list.some((u) => u.id === id) || !this.#read().some((r) => r.id === id)) return;
    this.list.push({ ...this.#make(null, path, id), folder: false, size, modified, state: "missing" });
    this.changed();
  }
}

// isSame says whether a file is the one that an upload was started with.
export function isSame(upload, file) {
  return upload.size === file.size && upload.modified === file.lastModified;
}

function lockOf({ id }) {
  return `upload ${id}`;
}

function takenProblem() {
  return Object.assign(new Problem(412, "taken", "A file with this name already exists."), { taken: true });
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
