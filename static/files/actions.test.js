import assert from "node:assert/strict";
import { test } from "node:test";
import { Files, Problem } from "./api.js";
import { FileActions } from "./actions.js";
import { fakePage } from "../js/fake_dom.js";

fakePage();

// FileActions on a folder /to that has these names, with a fixed answer to every question.
function world(there, answer) {
  const w = { moved: [], done: [] };
  const note = (verb) => async (from, to) => w.done.push([verb, from.join(), to]);
  const owner = {
    files: { list: async () => ({ entries: there.map((key) => ({ key })), next: "" }), move: note("move"), copy: note("copy") },
    tree: { find: () => null }, moved: (from, to) => w.moved.push([from, to]), toast: (text) => assert.fail(text),
  };
  w.actions = new FileActions(owner, {
    ask: async (question) => {
      w.question = question;
      return answer;
    },
  });
  return w;
}

test("a move under another name is reported, so that open files follow", async () => {
  const w = world(["a.txt"], "both");
  await w.actions.moveOrCopy(["/from/a.txt", "/from/b.txt"], "/to", false);
  assert.deepEqual(w.done, [["move", "/from/b.txt", "/to"], ["move", "/from/a.txt", "/to/a%20(2).txt"]]);
  assert.deepEqual(w.moved, [["/from/b.txt", "/to/b.txt"], ["/from/a.txt", "/to/a%20(2).txt"]]);
});

test("copied and skipped files are not reported as moved", async () => {
  const copied = world(["a.txt"], "both");
  await copied.actions.moveOrCopy(["/from/a.txt"], "/to", true);
  assert.deepEqual(copied.moved, []);
  const skipped = world(["a.txt"], "skip");
  await skipped.actions.moveOrCopy(["/from/a.txt"], "/to", false);
  assert.deepEqual([skipped.done, skipped.moved], [[], []]);
});

test("the default answer to a name conflict is harmless", async () => {
  const w = world(["a.txt"], "skip");
  await w.actions.moveOrCopy(["/from/a.txt"], "/to", false);
  assert.deepEqual(w.question.buttons.filter((b) => b.usual).map((b) => b.value), ["both"]);
  assert.match(w.question.text, /^In to\./);
  w.actions.owner.files.home = "/to";
  await w.actions.moveOrCopy(["/from/a.txt"], "/to", false);
  assert.match(w.question.text, /^In ~\./);
});

test("a partly failed move reports what was moved, and does not retry that", async () => {
  const w = world([]);
  const { owner } = w.actions;
  const disk = { "/from": ["a", "b", "c"], "/about": ["d"], "/to": [] };
  const toasts = [];
  let broken = true;
  owner.toast = (...toast) => toasts.push(toast);
  owner.files.list = async (folder) => ({ entries: disk[folder].map((key) => ({ key })), next: "" });
  owner.files.move = async (from, to) => {
    w.done.push(from.join());
    for (const path of from) {
      const [, parent, name] = path.match(/(.*)\/(.*)/);
      if (name === "b" && broken) throw new Problem(503, "unavailable", "It does not answer.");
      disk[parent] = disk[parent].filter((n) => n !== name);
      disk[to].push(name);
    }
  };
  await w.actions.moveOrCopy(["/about/d", "/from/a", "/from/b", "/from/c"], "/to", false);
  assert.deepEqual(w.moved, [["/about/d", "/to/d"], ["/from/a", "/to/a"]]);
  broken = false;
  await toasts[0][1].action.act();
  assert.deepEqual(w.moved.slice(2), [["/from/b", "/to/b"], ["/from/c", "/to/c"]]);
  assert.deepEqual(w.done, ["/about/d,/from/a,/from/b,/from/c", "/from/b,/from/c"]);
});

test("a partly failed delete is retried with the rest", async () => {
  const w = world([]);
  const { owner } = w.actions;
  const asked = [];
  const toasts = [];
  const answers = [new Problem(503, "unavailable", "It does not answer.", "", [{ id: "1", path: "/a" }]), null];
  Object.assign(owner, { gone() {}, toast: (...toast) => toasts.push(toast) });
  owner.files.remove = async (paths) => {
    asked.push(paths);
    const wrong = answers.shift();
    if (wrong) throw wrong;
    return paths.map((path) => ({ id: path, path }));
  };
  await w.actions.remove([{ path: "/a", entry: {} }, { path: "/b", entry: {} }]);
  await toasts[0][1].action.act();
  assert.deepEqual(asked, [["/a", "/b"], ["/b"]]);
});

// A world whose trash refuses everything below /home/.local, and checks all paths before it moves any.
function fussy(confirm) {
  const w = world([]);
  Object.assign(w, { asked: [], sent: [], toasts: [], gone: [] });
  const { owner, asking } = w.actions;
  Object.assign(owner, { gone: (paths) => w.gone.push(...paths), toast: (...toast) => w.toasts.push(toast) });
  asking.confirm = async (question) => w.asked.push(question) && confirm;
  owner.files.remove = async (paths, permanent) => {
    w.sent.push([paths.join(), Boolean(permanent)]);
    if (permanent) return null;
    if (paths.some((path) => path.startsWith("/home/.local"))) throw new Problem(409, "conflict", "It is the trash itself or in it: delete it for good.");
    return paths.map((path) => ({ id: path, path }));
  };
  owner.files.restore = async (ids) => (w.restored = ids);
  owner.loader = { reloadAll() {} };
  return w;
}

const nodesOf = (...paths) => paths.map((path) => ({ path, entry: { type: "folder" } }));

test("only files that the trash refuses are asked about and deleted permanently", async () => {
  const w = fussy(true);
  await w.actions.remove(nodesOf("/home/a", "/home/.local", "/home/b"));
  assert.deepEqual(w.asked.map((q) => q.title), ["Delete “.local” permanently?"]);
  assert.match(w.asked[0].text, /^It is the trash itself/);
  assert.deepEqual(w.sent.filter(([, permanent]) => permanent), [["/home/.local", true]]);
  assert.deepEqual(w.gone.sort(), ["/home/.local", "/home/a", "/home/b"]);
  assert.equal(w.toasts.at(-1)[0], "“.local” permanently deleted, 2 items moved to the trash");
  await w.toasts.at(-1)[1].action.act();
  assert.deepEqual(w.restored, ["/home/a", "/home/b"], "which are brought back together");
});

test("when the disk is full they are deleted permanently, after a question", async () => {
  const w = fussy(true);
  w.actions.owner.files.remove = async (paths, permanent) => {
    w.sent.push([paths.join(), Boolean(permanent)]);
    if (!permanent) throw new Problem(507, "disk_full", "The sandbox's disk is full.");
    return null;
  };
  await w.actions.remove(nodesOf("/home/a", "/home/b"));
  assert.deepEqual(w.asked.map((q) => q.title), ["Delete 2 items permanently?"]);
  assert.deepEqual(w.sent, [["/home/a,/home/b", false], ["/home/a,/home/b", true]]);
});

test("files that the trash refuses stay when the user declines", async () => {
  const w = fussy(false);
  await w.actions.remove(nodesOf("/home/.local/x", "/home/.local/y", "/home/a"));
  assert.match(w.asked[0].text, /^“x” and “y” cannot be moved to the trash\./);
  assert.deepEqual(w.gone, ["/home/a"]);
  assert.ok(w.sent.every(([, permanent]) => !permanent));
  await w.actions.remove(nodesOf("/home/.local"));
  assert.deepEqual(w.sent.at(-1), ["/home/.local", false], "one alone is not sent again");
  assert.equal(w.asked.length, 2);
});

test("archives contain folders by their names", async () => {
  const w = world([]);
  const { owner } = w.actions;
  owner.files = new Files("/f", "/home/agent");
  owner.files.stat = async (path) => ({ type: path.endsWith("link") ? "link" : "folder" });
  const made = [];
  const make = document.createElement;
  document.createElement = (tag) => Object.assign(make(tag), { click() { made.push(this.attributes.href); } });
  const node = (path, type = "folder", parent = {}) => ({ path, parent, folder: true, entry: { type } });
  for (const nodes of [
    [node("/home/agent/a%20b")], [node("/home/agent/a"), node("/home/agent/b")], [node("/home/agent/l", "link")],
    [node("/home/agent", "folder", null)], [node("/", "folder", null)], [node("/srv/www", "folder", null)], [node("/srv/link", "folder", null)],
  ]) await w.actions.download(nodes);
  document.createElement = make;
  assert.deepEqual(made, [
    "/f?path=/home/agent&archive=zip&name=a%20b", "/f?path=/home/agent&archive=zip&name=a&name=b", "/f?path=/home/agent/l&archive=zip",
    "/f?path=/home/agent&archive=zip", "/f?path=/&archive=zip", "/f?path=/srv&archive=zip&name=www", "/f?path=/srv/link&archive=zip",
  ]);
});
