// Files is the client for one sandbox's files. Paths are encoded (paths.js) in both directions.
import { live } from "../js/live.js";
import { pageSignal } from "../js/page_lifecycle.js";
import { canonical, encodePath, nameOf } from "./paths.js";

const problemType = "application/problem+json";
const patience = 90_000; // ms; waking a sandbox may take a minute

// Problem is a refusal, or a missing response. Its message is for users. code is the server's, or "offline", "late",
// "signed-out", "left". trashed lists what a failed delete had already moved to the trash: [{id, path}].
export class Problem extends Error {
  constructor(status, code, message, field = "", trashed = []) {
    super(message);
    this.status = status;
    this.code = code;
    this.field = field;
    this.trashed = trashed;
  }

  // passing says whether a retry may succeed.
  get passing() {
    return this.status === 0 ? this.code !== "left" : [429, 502, 503, 504].includes(this.status);
  }
}

export const cancelled = () => new Problem(0, "left", "Cancelled.");
export const signedOut = () => new Problem(401, "signed-out", words[401]);

// problemOf converts what fetch throws to a Problem.
export function problemOf(err) {
  if (err instanceof Problem) return err;
  if (err?.name === "AbortError") return cancelled();
  if (err?.name === "TimeoutError") return new Problem(0, "late", "The sandbox did not respond in time.");
  if (err instanceof TypeError && globalThis.navigator?.onLine === false) return new Problem(0, "offline", "You are offline.");
  if (err instanceof TypeError) return new Problem(0, "offline", "The server cannot be reached.");
  return new Problem(0, "broken", String(err?.message ?? err));
}

const words = {
  401: "You are signed out. Sign in again in another tab, then retry.",
  403: "You do not have permission.",
  404: "It no longer exists.",
  409: "Something with this name already exists.",
  412: "It has changed in the meantime.",
  413: "It is too large.",
  507: "The disk is full.",
};

// refused creates a Problem from a response's status, content type and body.
export function refused(status, kind, body) {
  if (kind.startsWith(problemType)) {
    try {
      const p = JSON.parse(body);
      return new Problem(status, p.code ?? "", p.detail || words[status] || p.title, p.field, (p.trashed ?? []).map(trashedOf));
    } catch {
      // only the status is known
    }
  }
  return new Problem(status, "", words[status] ?? `The server responded with status ${status}.`);
}

export class Files {
  // base: "/sandboxes/NAME/files". home: the encoded path of the user's home. box: the sandbox's id, which the server compares.
  constructor(base, home, box) {
    this.base = base;
    this.box = box;
    this.home = home;
  }

  // url returns the URL of a path. params: {name: value or list of values}; "name" values are encoded already.
  url(path, params = {}) {
    let query = `path=${path}`;
    for (const [key, value] of Object.entries(params)) {
      for (const v of [value].flat()) {
        if (v === undefined || v === null || v === false) continue;
        query += `&${key}=${key === "name" ? v : encodeURIComponent(v)}`;
      }
    }
    return this.#at("", query);
  }

  #at(verb, query = "") {
    const all = [query, this.box && `sandbox_id=${this.box}`].filter(Boolean).join("&");
    return `${this.base}${verb}${all ? `?${all}` : ""}`;
  }

  // ask sends a request. It throws a Problem.
  async ask(url, { method = "GET", headers = {}, body, cache, signal, limit = patience } = {}) {
    const signals = [pageSignal(), signal, limit ? AbortSignal.timeout(limit) : null].filter(Boolean);
    let answer;
    try {
      answer = await fetch(url, {
        method, body, cache, headers: { Accept: problemType, ...headers }, redirect: "manual", signal: AbortSignal.any(signals),
      });
    } catch (err) {
      throw problemOf(err);
    }
    if (answer.type === "opaqueredirect") throw signedOut();
    if (answer.ok || answer.status === 304) return answer;
    throw refused(answer.status, answer.headers.get("Content-Type") ?? "", await answer.text().catch(() => ""));
  }

  async json(url, options) {
    const answer = await this.ask(url, options);
    try {
      return answer.status === 204 ? null : await answer.json();
    } catch (err) {
      throw problemOf(err);
    }
  }

  post(verb, body, options) {
    return this.json(this.#at(`:${verb}`), { method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" }, ...options });
  }

  // find returns the entry of a path, or null when there is none. The browser's console shows no error then.
  async find(path) {
    const entry = await this.json(this.url(path, { stat: "true", missing: "empty", refresh: "true" }));
    return entry && entryOf(entry);
  }

  // stat returns an entry with its ETag. quiet is for automatic refreshes: it does not count as use of the sandbox and never
  // wakes it.
  stat(path, { quiet, ...options } = {}) {
    return this.json(this.url(path, { stat: "true", refresh: quiet && "true" }), options).then(entryOf);
  }

  // list returns one page of a folder: {entries, next}.
  async list(path, { after, limit = 1000, quiet, signal } = {}) {
    const page = await this.json(this.url(path, { limit, after, refresh: quiet && "true" }), { signal });
    if (!Array.isArray(page?.entries)) throw new Problem(400, "no-folder", "This is not a folder.");
    return { entries: page.entries.map(entryOf), next: page.next || "" };
  }

  // read returns {bytes, etag, size, part}: a whole file, or at most its first most bytes. long requests only these (a
  // Range); it bypasses the cache, because browsers mix cached parts with newer versions of the file.
  async read(path, { most, long, signal } = {}) {
    const part = long ? { headers: { Range: `bytes=0-${most - 1}` }, cache: "no-store" } : {};
    const answer = await this.ask(this.url(path), { ...part, signal });
    const total = /\/(\d+)$/.exec(answer.headers.get("Content-Range") ?? "")?.[1];
    try {
      const { bytes, more } = most ? await firstOf(answer.body, most) : { bytes: new Uint8Array(await answer.arrayBuffer()) };
      const size = total ? Number(total) : more ? Math.max(most + 1, Number(answer.headers.get("Content-Length") ?? 0)) : bytes.length;
      return { bytes, etag: answer.headers.get("ETag") ?? "", size, part: bytes.length < size };
    } catch (err) {
      throw problemOf(err);
    }
  }

  // write replaces a file and returns its entry. ifMatch: the required ETag; fresh: the file must not exist yet.
  async write(path, bytes, { ifMatch, fresh, parents, signal, limit } = {}) {
    const headers = { "Content-Type": "application/octet-stream" };
    if (ifMatch) headers["If-Match"] = ifMatch;
    if (fresh) headers["If-None-Match"] = "*";
    const answer = await this.ask(this.url(path, { parents: parents && "true" }), { method: "PUT", body: bytes, headers, signal, limit });
    const entry = entryOf(await answer.json());
    return { ...entry, etag: answer.headers.get("ETag") ?? entry.etag };
  }

  mkdir(path, parents = false) {
    return this.post("mkdir", { path_encoded: path, parents });
  }

  move(from, to, overwrite = false) {
    return this.post("move", { from_encoded: from, to_encoded: to, overwrite }, { limit: 0 });
  }

  copy(from, to, overwrite = false) {
    return this.post("copy", { from_encoded: from, to_encoded: to, overwrite }, { limit: 0 });
  }

  chmod(path, mode) {
    return this.post("chmod", { path_encoded: path, mode });
  }

  // remove moves paths to the trash and returns [{id, path}]; permanently: null.
  async remove(paths, permanent = false) {
    const query = paths.map((p) => `path=${p}`).join("&") + (permanent ? "&permanent=true" : "");
    const gone = await this.json(this.#at("", query), { method: "DELETE", limit: 0 });
    return gone?.trashed?.map(trashedOf) ?? null;
  }

  async trash(options) {
    const list = await this.json(this.#at(":trash"), options);
    return (list.trashed ?? list.entries ?? []).map(trashedOf);
  }

  restore(ids) {
    return this.post("restore", { ids_encoded: ids }, { limit: 0 });
  }

  // emptyTrash permanently deletes the items with these ids, or all.
  emptyTrash(ids = []) {
    const query = ids.map((id) => `id=${id}`).join("&");
    return this.json(this.#at(":trash", query), { method: "DELETE", limit: 0 });
  }

  // names yields the names of the files below the home, a folder at a time.
  async *names() {
    const answer = await this.ask(this.#at(":names"), { limit: 0 });
    yield* lines(answer.body);
  }

  // search yields results as they are found.
  async *search(query, signal) {
    const answer = await this.ask(this.#at(":search"), {
      method: "POST", body: JSON.stringify(query), signal, limit: 0,
      headers: { "Content-Type": "application/json", Accept: "application/x-ndjson" },
    });
    yield* lines(answer.body);
  }

  // archive returns the URL of an archive of a folder, or of these names in it.
  archive(path, form, names = []) {
    return this.url(path, { archive: form, name: names });
  }

  // pathOf returns the path in an event.
  pathOf(told) {
    return told.path_encoded ? canonical(told.path_encoded) : encodePath(told.path);
  }

  watch(paths) {
    return live.open(this.#at("", paths.map((p) => `path=${p}`).join("&")));
  }
}

// firstOf returns at most most bytes of a stream, and whether there were more, and cancels the rest.
async function firstOf(stream, most) {
  const parts = [];
  let length = 0;
  let more = false;
  const reader = stream?.getReader();
  while (reader && !more) {
    const { value, done } = await reader.read();
    if (done) break;
    more = value.length > most - length;
    parts.push(value.subarray(0, most - length));
    length += parts.at(-1).length;
  }
  reader?.cancel().catch(() => {});
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return { bytes, more };
}

// lines yields the values of a stream of JSON lines.
export async function* lines(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      rest += value ?? "";
      const parts = rest.split("\n");
      rest = parts.pop();
      for (const line of done ? [...parts, rest] : parts) if (line.trim()) yield JSON.parse(line);
      if (done) return;
    }
  } catch (err) {
    throw problemOf(err);
  } finally {
    reader.cancel().catch(() => {}); // ends the search in the sandbox
  }
}

// entryOf adds the encoded name.
function entryOf(entry) {
  return { ...entry, key: nameOf(entry) };
}

function trashedOf(t) {
  return {
    ...t,
    id: t.id_encoded ? canonical(t.id_encoded) : encodeURIComponent(t.id.toWellFormed()),
    path: t.path_encoded ? canonical(t.path_encoded) : encodePath(t.path),
  };
}
