import assert from "node:assert/strict";
import { test } from "node:test";
import { fairShare, Watch } from "./watch.js";

test("each watcher gets a share of the watched folders", () => {
  const many = Array.from({ length: 100 }, (_, i) => `/t/${String(i).padStart(3, "0")}`);
  const out = fairShare([many, ["/e/1", "/e/2"]], 10);
  assert.equal(out.length, 10);
  assert.ok(out.includes("/e/1") && out.includes("/e/2") && out.includes("/t/000") && !out.includes("/t/099"));
  assert.deepEqual(fairShare([["/b", "/a"], ["/a"]]), ["/a", "/b"]);
});

class Stream extends EventTarget {
  closed = false;
  close() {
    this.closed = true;
  }
}

function world() {
  const streams = [];
  const files = { watch: (paths) => (streams.push(Object.assign(new Stream(), { paths })), streams.at(-1)), pathOf: (told) => told.path };
  return { streams, watch: new Watch(files), open: () => streams.filter((s) => !s.closed) };
}

const tell = (stream, path) => stream.dispatchEvent(Object.assign(new Event("changed"), { data: JSON.stringify({ path }) }));

test("watchers share one channel, which is reopened for other folders and closed while not visible", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { streams, watch, open } = world();
  const told = [];
  watch.want("tree", ["/a", "/b"], (path) => told.push(["tree", path]));
  watch.want("editor", ["/b", "/c"], (path) => told.push(["editor", path]));
  t.mock.timers.tick(300);
  assert.equal(streams.length, 1);
  assert.deepEqual(streams[0].paths, ["/a", "/b", "/c"]);
  tell(streams[0], "/b");
  tell(streams[0], "/c");
  tell(streams[0], "/elsewhere");
  assert.deepEqual(told, [["tree", "/b"], ["editor", "/b"], ["editor", "/c"]]);

  watch.want("tree", ["/a", "/b"], () => {});
  t.mock.timers.tick(300);
  assert.equal(streams.length, 1, "the same wish makes no new stream");
  watch.run(false);
  t.mock.timers.tick(300);
  assert.equal(open().length, 0);
  watch.run(true);
  t.mock.timers.tick(300);
  assert.equal(open().length, 1);
});

test("a new channel takes over without a gap and without reporting unchanged folders", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { streams, watch, open } = world();
  const told = [];
  const want = (...folders) => watch.want("tree", folders, (path) => told.push(path));
  want("/a");
  t.mock.timers.tick(300);
  tell(streams[0], "/a");
  want("/a", "/b");
  t.mock.timers.tick(300);
  assert.equal(open().length, 2, "the first continues until the second watches");
  told.length = 0;
  tell(streams[1], "/a");
  tell(streams[1], "/b");
  assert.deepEqual(told, ["/b"], "what is watched anew may have changed before");
  assert.deepEqual(open(), [streams[1]]);
  tell(streams[1], "/a");
  assert.deepEqual(told, ["/b", "/a"]);
});

test("after an interruption all folders count as changed", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { streams, watch } = world();
  const told = [];
  const want = (...folders) => watch.want("tree", folders, (path) => told.push(path));
  want("/a", "/b");
  t.mock.timers.tick(300);
  tell(streams[0], "/a");
  tell(streams[0], "/b");
  streams[0].dispatchEvent(new Event("lost"));
  want("/a", "/b", "/c");
  t.mock.timers.tick(300);
  told.length = 0;
  for (const path of ["/a", "/b", "/c"]) tell(streams[1], path);
  assert.deepEqual(told, ["/a", "/b", "/c"]);

  want("/a", "/b");
  t.mock.timers.tick(300);
  streams[2].dispatchEvent(new Event("lost"));
  told.length = 0;
  for (const path of ["/a", "/b"]) tell(streams[2], path);
  assert.deepEqual(told, ["/a", "/b"]);
});

test("an ended channel is reopened with backoff, and then all folders count as changed", (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  t.mock.method(Math, "random", () => 1);
  const { streams, watch, open } = world();
  const told = [];
  watch.want("tree", ["/a"], (path) => told.push(path));
  t.mock.timers.tick(300);
  tell(streams[0], "/a");
  told.length = 0;
  streams[0].dispatchEvent(new Event("ended"));
  assert.equal(open().length, 0);
  t.mock.timers.tick(1000);
  assert.equal(open().length, 1);
  open()[0].dispatchEvent(new Event("ended"));
  t.mock.timers.tick(1000);
  assert.equal(open().length, 0, "the second time takes longer");
  t.mock.timers.tick(1000);
  tell(open()[0], "/a");
  assert.deepEqual(told, ["/a"]);
});
