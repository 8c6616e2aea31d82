import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeStorage, turns } from "../js/fake_dom.js";
import { Problem } from "./api.js";
import { isSame, piece, Uploads } from "./uploads.js";

// A fake sandbox that accepts whole files and pieces as sandboxd does.
function world({ there = {}, store = new FakeStorage(), answers = [], ask, locks, parts = new Map(), busy = 0 } = {}) {
  const disk = new Map(Object.entries(there));
  const sent = [];
  const folders = [];
  const files = {
    base: "/sandboxes/otter/files",
    url: (path, params = {}) => ({ path, ...params }),
    stat: async (path) => {
      if (!disk.has(path)) throw new Problem(404, "not_found", "no");
      return { path };
    },
    mkdir: async (path) => folders.push(path),
    json: async (url, { method } = {}) => {
      if (method === "DELETE" && busy-- > 0) throw new Problem(409, "conflict", "A part of that upload is under way.");
      if (method === "DELETE") return parts.delete(url.upload);
      return { offset: parts.get(url.upload) ?? 0 };
    },
  };
  const send = async ({ url, headers, body, progress, signal }) => {
    sent.push({ ...url, headers });
    const next = answers.shift();
    if (next instanceof Error) throw next;
    if (typeof next === "function") await next(url, signal);
    if (next?.status) return { problem: new Problem(next.status, "", "no"), ...next };
    progress(body.size);
    if (headers["Content-Range"]?.startsWith("bytes */")) {
      disk.set(url.path, parts.get(url.upload));
      return { status: 201, body: "{}" };
    }
    const range = /bytes (\d+)-(\d+)\/(\d+)/.exec(headers["Content-Range"] ?? "");
    if (headers["If-None-Match"] && disk.has(url.path)) return { status: 412, problem: new Problem(412, "", "there") };
    if (range && Number(range[1]) !== (parts.get(url.upload) ?? 0)) return { status: 409, problem: new Problem(409, "", "offset") };
    if (range) parts.set(url.upload, Number(range[2]) + 1);
    if (range && Number(range[2]) + 1 < Number(range[3])) return { status: 202, body: JSON.stringify({ offset: parts.get(url.upload) }) };
    disk.set(url.path, range ? Number(range[3]) : body.size);
    return { status: 201, body: "{}" };
  };
  const arrived = [];
  const asked = [];
  const queue = new Uploads(files, {
    send, store, locks, owner: "ann box", wait: async () => {}, changed: () => {}, arrived: (path) => arrived.push(path),
    ask: async (upload, more) => {
      asked.push([upload.path, more]);
      return ask(upload, more);
    },
  });
  return { queue, disk, sent, folders, arrived, asked, parts, store };
}

const file = (size, modified = 7) => ({ size, lastModified: modified, slice: (a, b) => ({ size: b - a }) });

async function settled(queue) {
  for (let i = 0; i < 1000 && queue.list.some((u) => ["waiting", "sending", "broken", "asking"].includes(u.state)); i++) await new Promise(setImmediate);
  return queue.list.map((u) => u.state);
}

test("small files are sent whole, with their folders, and empty folders are created", async () => {
  const w = world();
  w.queue.add([{ file: file(3), path: "/a/one" }, { file: file(0), path: "/a/two" }, { path: "/a/empty" }]);
  assert.deepEqual(await settled(w.queue), ["done", "done", "done"]);
  assert.deepEqual([...w.disk.keys()], ["/a/one", "/a/two"]);
  assert.deepEqual(w.folders, ["/a/empty"]);
  assert.equal(w.sent[0].parents, "true");
  assert.deepEqual(w.arrived.sort(), ["/a/empty", "/a/one", "/a/two"]);
});

test("large files are sent in pieces, and leave no record", async () => {
  const w = world();
  w.queue.add([{ file: file(2 * piece + 5), path: "/big" }]);
  assert.deepEqual(await settled(w.queue), ["done"]);
  assert.deepEqual(w.sent.map((s) => s.headers["Content-Range"]), [`bytes 0-${piece - 1}/${2 * piece + 5}`, `bytes ${piece}-${2 * piece - 1}/${2 * piece + 5}`, `bytes ${2 * piece}-${2 * piece + 4}/${2 * piece + 5}`]);
  assert.equal(w.disk.get("/big"), 2 * piece + 5);
  assert.equal(w.store.size, 0);
});

test("an upload resumes after a lost connection", async () => {
  const w = world({ answers: [null, new Problem(0, "offline", "lost"), new Problem(0, "offline", "lost")] });
  w.queue.add([{ file: file(3 * piece), path: "/big" }]);
  assert.deepEqual(await settled(w.queue), ["done"]);
  assert.equal(w.sent.length, 5);
  assert.equal(w.sent[3].headers["Content-Range"], `bytes ${piece}-${2 * piece - 1}/${3 * piece}`);
});

test("a piece whose response was lost is not sent twice", async () => {
  const w = world({
    answers: [async (url) => {
      w.parts.set(url.upload, piece);
      throw new Problem(0, "offline", "lost");
    }],
  });
  w.queue.add([{ file: file(2 * piece), path: "/big" }]);
  assert.deepEqual(await settled(w.queue), ["done"]);
  assert.equal(w.sent[1].headers["Content-Range"], `bytes ${piece}-${2 * piece - 1}/${2 * piece}`);
});

test("a file that is complete only gets its name", async () => {
  const w = world({
    answers: [async (url) => {
      w.parts.set(url.upload, 2 * piece);
      throw new Problem(0, "offline", "lost");
    }],
  });
  w.queue.add([{ file: file(2 * piece), path: "/big" }]);
  assert.deepEqual(await settled(w.queue), ["done"]);
  assert.equal(w.sent[1].headers["Content-Range"], `bytes */${2 * piece}`);
  assert.equal(w.disk.get("/big"), 2 * piece);
});

test("after a reload the same file resumes, and another does not", async () => {
  const store = new FakeStorage();
  const first = world({ store, answers: [null, async (_, signal) => new Promise((_ok, no) => signal.addEventListener("abort", () => no(new Problem(0, "left", "gone"))))] });
  first.queue.add([{ file: file(3 * piece), path: "/big" }]);
  for (let i = 0; i < 1000 && first.sent.length < 2; i++) await new Promise(setImmediate);
  assert.equal(store.size, 1);

  const second = world({ store });
  second.parts.set(second.queue.list[0].id, piece);
  const [upload] = second.queue.list;
  assert.equal(upload.state, "missing");
  assert.equal(second.queue.adopt(upload, file(3 * piece, 8)), false);
  assert.equal(second.queue.adopt(upload, file(3 * piece)), true);
  assert.deepEqual(await settled(second.queue), ["done"]);
  assert.equal(second.sent[0].headers["Content-Range"], `bytes ${piece}-${2 * piece - 1}/${3 * piece}`);
  assert.equal(store.size, 0);
});

// Fake Web Locks.
function locksOf() {
  const held = new Map(); // name → waiting requests
  const request = async (name, options, act = options) => {
    while (held.has(name)) {
      if (options.ifAvailable) return act(null);
      await new Promise((free) => held.get(name).push(free));
    }
    held.set(name, []);
    try {
      return await act({ name });
    } finally {
      const waiting = held.get(name);
      held.delete(name);
      for (const free of waiting) free();
    }
  };
  return { held, request };
}

// until returns an answer that blocks a request until go() or an abort.
function until() {
  let go;
  const answer = (_, signal) => new Promise((ok, no) => {
    go = ok;
    signal.addEventListener("abort", () => no(new Problem(0, "left", "gone")));
  });
  return { answer, go: () => go() };
}

test("another window's upload is neither shown nor cancelled, and can be adopted once that ends", async () => {
  const shared = { store: new FakeStorage(), locks: locksOf(), parts: new Map() };
  const wait = until();
  const first = world({ ...shared, answers: [null, wait.answer] });
  first.queue.add([{ file: file(3 * piece), path: "/big" }]);
  await turns();
  assert.equal(first.sent.length, 2);

  const second = world(shared);
  await turns();
  assert.deepEqual(second.queue.list, []);
  wait.go();
  assert.deepEqual(await settled(first.queue), ["done"]);
  await turns();
  assert.deepEqual(second.queue.list, [], "what has arrived is missing nowhere");
  assert.equal(shared.locks.held.size, 0);
});

test("an unfinished upload is offered in every window, and only one resumes it", async () => {
  const shared = { store: new FakeStorage(), locks: locksOf(), parts: new Map([["abc", piece]]) };
  shared.store.setItem("uploads ann box", JSON.stringify([{ id: "abc", path: "/big", size: 2 * piece, modified: 7, at: Date.now() }]));
  const wait = until();
  const first = world({ ...shared, answers: [wait.answer] });
  const second = world(shared);
  await turns();
  assert.deepEqual([first.queue.list[0].state, second.queue.list[0].state], ["missing", "missing"]);
  first.queue.adopt(first.queue.list[0], file(2 * piece));
  await turns();

  second.queue.adopt(second.queue.list[0], file(2 * piece));
  assert.deepEqual(await settled(second.queue), ["failed"]);
  assert.match(second.queue.list[0].problem.message, /Another window/);
  second.queue.cancel(second.queue.list[0]);
  await turns();
  assert.equal(shared.parts.get("abc"), piece, "what has arrived stays");
  assert.equal(shared.store.size, 1);
  wait.go();
  assert.deepEqual(await settled(first.queue), ["done"]);
  assert.equal(first.sent[0].upload, "abc");
  assert.equal(shared.store.size, 0);
});

test("an upload that no window sends can be cancelled; without Web Locks the server cleans up", async () => {
  for (const [locks, left] of [[locksOf(), 0], [undefined, 1]]) {
    const shared = { store: new FakeStorage(), locks, parts: new Map([["abc", piece]]) };
    shared.store.setItem("uploads ann box", JSON.stringify([{ id: "abc", path: "/big", size: 2 * piece, modified: 7, at: Date.now() }]));
    const w = world(shared);
    await turns();
    w.queue.cancel(w.queue.list[0]);
    await turns();
    assert.equal(shared.parts.size, left);
    assert.deepEqual([w.queue.list.length, shared.store.size], [0, 0]);
  }
});

test("dropping the same file after a reload resumes", async () => {
  const store = new FakeStorage();
  store.setItem("uploads ann box", JSON.stringify([{ id: "abc", path: "/big", size: 2 * piece, modified: 7, at: Date.now() }, { id: "old", path: "/x", size: 1, modified: 1, at: 0 }]));
  const w = world({ store });
  assert.equal(w.queue.list.length, 1, "what is older than a day has been swept");
  w.parts.set("abc", piece);
  w.queue.add([{ file: file(2 * piece), path: "/big" }]);
  assert.deepEqual(await settled(w.queue), ["done"]);
  assert.equal(w.sent.length, 1);
  assert.equal(w.sent[0].upload, "abc");
});

test("name conflicts are asked about, once when the answer is for all", async () => {
  const w = world({ there: { "/a": 1, "/b": 1, "/c": 1 }, ask: async () => ({ what: "replace", all: true }) });
  w.queue.add(["/a", "/b", "/c", "/d"].map((path) => ({ file: file(9), path })));
  assert.deepEqual(await settled(w.queue), ["done", "done", "done", "done"]);
  assert.equal(w.asked.length, 1);
  assert.deepEqual([...w.disk.values()], [9, 9, 9, 9]);
});

test("keeping both renames the upload, and skipped ones leave the list", async () => {
  const w = world({ there: { "/a.txt": 1, "/a%20(2).txt": 1, "/b": 1 }, ask: async (u) => ({ what: u.path === "/b" ? "skip" : "both" }) });
  w.queue.add([{ file: file(9), path: "/a.txt" }, { file: file(9), path: "/b" }]);
  assert.deepEqual(await settled(w.queue), ["done"]);
  assert.equal(w.disk.get("/a%20(3).txt"), 9);
  assert.equal(w.disk.get("/b"), 1);
});

test("a name conflict of a large file is asked about before sending", async () => {
  const w = world({ there: { "/big": 1 }, ask: async () => ({ what: "skip" }) });
  w.queue.add([{ file: file(2 * piece), path: "/big" }]);
  assert.deepEqual(await settled(w.queue), []);
  assert.equal(w.sent.length, 0);
});

test("a permanent failure shows its reason and can be retried", async () => {
  const w = world({ answers: [{ status: 507, body: "", problem: new Problem(507, "disk_full", "The disk is full.") }] });
  w.queue.add([{ file: file(5), path: "/a" }]);
  assert.deepEqual(await settled(w.queue), ["failed"]);
  const [upload] = w.queue.list;
  assert.equal(upload.problem.message, "The disk is full.");
  w.queue.retry(upload);
  assert.deepEqual(await settled(w.queue), ["done"]);
});

test("retries are bounded", async () => {
  const w = world({ answers: Array.from({ length: 20 }, () => new Problem(0, "offline", "lost")) });
  w.queue.add([{ file: file(5), path: "/a" }]);
  assert.deepEqual(await settled(w.queue), ["failed"]);
  assert.ok(w.sent.length < 20);
});

test("cancelling stops the request and deletes the pieces", async () => {
  let left = false;
  const w = world({ answers: [null, null, (_, signal) => new Promise((_ok, no) => signal.addEventListener("abort", () => ((left = true), no(new Problem(0, "left", "gone")))))] });
  w.queue.add([{ file: file(3 * piece), path: "/big" }, { file: file(1), path: "/small" }]);
  for (let i = 0; i < 1000 && w.sent.length < 3; i++) await new Promise(setImmediate);
  assert.equal(w.sent.length, 3);
  w.queue.cancel(w.queue.list[0]);
  assert.deepEqual(await settled(w.queue), ["done"]);
  assert.ok(left);
  assert.equal(w.parts.size, 0);
  assert.equal(w.store.size, 0);
});

test("pieces are deleted even while the last one is being written", async () => {
  const wait = until();
  const w = world({ answers: [null, wait.answer], busy: 3 });
  w.queue.add([{ file: file(3 * piece), path: "/big" }]);
  await turns();
  assert.equal(w.parts.size, 1);
  w.queue.cancel(w.queue.list[0]);
  await turns();
  assert.deepEqual([w.parts.size, w.store.size], [0, 0]);
});

test("the queue handles ten thousand small files", async () => {
  const w = world();
  w.queue.add(Array.from({ length: 10_000 }, (_, i) => ({ file: file(1), path: `/f${i}` })));
  const began = performance.now();
  for (let i = 0; i < 100_000 && w.queue.open.length; i++) await new Promise(setImmediate);
  assert.equal(w.disk.size, 10_000);
  assert.ok(performance.now() - began < 60_000, `${performance.now() - began} ms`);
});

test("files are compared by size and time", () => {
  assert.ok(isSame({ size: 5, modified: 7 }, file(5)));
  assert.ok(!isSame({ size: 5, modified: 6 }, file(5)));
});
