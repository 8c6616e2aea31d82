import assert from "node:assert/strict";
import { test } from "node:test";
import "./fake_window.js";
import { turns } from "./fake_dom.js";
const { ArchiveUpload, urlOf } = await import("./archive_upload.js");

// world is an upload whose server is the test.
function world({ undone = [] } = {}) {
  const w = { states: [], undo: [], time: 0 };
  w.upload = new ArchiveUpload({
    now: () => w.time,
    changed: () => w.states.at(-1) !== w.upload.state && w.states.push(w.upload.state),
    undo: async (url) => {
      w.undo.push(url);
      return undone.shift() ?? false;
    },
    send: (request) =>
      new Promise((resolve, reject) => {
        w.request = request;
        w.answers = (status, body) => resolve({ status, body: JSON.stringify(body), problem: { status, code: body.code ?? "", message: body.detail ?? "", field: body.field } });
        w.loses = () => reject({ status: 0, code: "offline", message: "The connection was lost." });
        request.signal.addEventListener("abort", () => reject({ status: 0, code: "left", message: "Cancelled." }));
      }),
  });
  w.start = (cancel = "/sandboxes/lab/restore") => w.upload.start({ method: "PUT", url: "/there", file: { size: 4 << 20 }, cancel });
  return w;
}

test("a file is sent, checked and restored", async () => {
  const w = world();
  w.start();
  assert.equal(w.request.method, "PUT");
  w.request.progress(1 << 20);
  assert.equal(w.upload.words(), "1 MiB of 4 MiB uploaded");
  w.time = 1000;
  w.request.progress(2 << 20);
  assert.equal(w.upload.words(), "2 MiB of 4 MiB uploaded · 2 s left");
  w.request.uploaded();
  assert.equal(w.upload.words(), "Checking and restoring…");
  w.answers(200, { name: "lab" });
  await turns();
  assert.deepEqual(w.states, ["sending", "working", "done"]);
  assert.equal(w.upload.answer.name, "lab");
});

test("a refusal is told, and the file can be sent again", async () => {
  const w = world();
  w.start();
  w.answers(400, { detail: "The archive is damaged.", field: "template" });
  await turns();
  assert.equal(w.upload.state, "failed");
  assert.equal(w.upload.problem.message, "The archive is damaged.");
  assert.equal(w.upload.problem.field, "template");
  w.start();
  assert.equal(w.upload.state, "sending");
  assert.equal(w.upload.problem, null);
});

test("an upload is cancelled at once", async () => {
  const w = world();
  w.start();
  await w.upload.cancel();
  await turns();
  assert.equal(w.upload.state, "idle");
  assert.deepEqual(w.undo, []);
});

test("a restore is cancelled by the server, whose answer counts", async () => {
  const w = world({ undone: [true] });
  w.start();
  w.request.uploaded();
  await w.upload.cancel();
  assert.deepEqual(w.undo, ["/sandboxes/lab/restore"]);
  assert.equal(w.upload.state, "cancelling");
  w.answers(410, { detail: "The restore was cancelled." });
  await turns();
  assert.equal(w.upload.state, "idle");
});

test("a check is cancelled by hanging up, and a restore that has begun just then too", async () => {
  const w = world({ undone: [false, true] });
  w.start();
  w.request.uploaded();
  await w.upload.cancel();
  await turns();
  assert.equal(w.undo.length, 2);
  assert.equal(w.upload.state, "idle");
});

test("a sandbox that is being made is not cancelled halfway", async () => {
  const w = world();
  w.start("");
  assert.ok(w.upload.stops);
  w.request.uploaded();
  assert.ok(!w.upload.stops);
  assert.equal(w.upload.words(), "Checking, then making the sandbox…");
  await w.upload.cancel();
  assert.equal(w.upload.state, "working");
});

test("a connection lost after the upload does not say that nothing has happened", async () => {
  const w = world();
  w.start();
  w.request.uploaded();
  w.loses();
  await turns();
  assert.equal(w.upload.state, "failed");
  assert.match(w.upload.problem.message, /own page shows/);
});

test("the address has what is chosen and entered", () => {
  const input = (name, type, value, checked = false) => ({ name, type, value, checked });
  const elements = [input("file", "file", "C:\\x"), input("save_first", "checkbox", "on", true), input("name", "text", " "), input("template", "select-one", "base"), input("", "submit", "")];
  assert.equal(urlOf({ dataset: { url: "/restore?sandbox_id=1" }, elements }), "/restore?sandbox_id=1&save_first=true&template=base");
  elements[1].checked = false;
  assert.equal(urlOf({ dataset: { url: "/restore" }, elements: elements.slice(0, 3) }), "/restore");
});
