import assert from "node:assert/strict";
import { test } from "node:test";
import * as p from "./paths.js";

test("names keep their bytes, whether UTF-8 or not", () => {
  for (const name of ["a b", "ü", "100%", "a+b", "#?&", "日本語", "emoji 🎉", "line\nbreak", "(x)!'*~"]) {
    assert.equal(p.decodeText(p.encodeName(name)), name);
    assert.equal(p.canonical(p.encodeName(name)), p.encodeName(name));
  }
  assert.equal(p.nameOf({ name: "bad\ufffd.txt", name_encoded: "bad%ff.txt" }), "bad%FF.txt");
  assert.deepEqual([...p.bytesOf("bad%FF.txt")].slice(3, 4), [0xff]);
  assert.equal(p.isText("bad%FF"), false);
  assert.equal(p.isText("gr%C3%BC"), true);
});

test("other percent-encodings become canonical", () => {
  assert.equal(p.canonical("a%2Bb%28c%29~x"), "a%2Bb(c)~x");
  assert.equal(p.canonical("%c3%bc"), "%C3%BC");
});

test("typed paths are absolute, below home, or relative to it, and never above the root", () => {
  const home = "/home/agent";
  assert.equal(p.encodePath("~", home), home);
  assert.equal(p.encodePath("~/a b/", home), "/home/agent/a%20b");
  assert.equal(p.encodePath("x/./y//z", home), "/home/agent/x/y/z");
  assert.equal(p.encodePath("/../../etc/../etc/passwd", home), "/etc/passwd");
  assert.equal(p.encodePath("/", home), "/");
});

test("paths are split and joined", () => {
  assert.equal(p.parentOf("/a/b"), "/a");
  assert.equal(p.parentOf("/a"), "/");
  assert.equal(p.parentOf("/"), "/");
  assert.equal(p.join("/", "a"), "/a");
  assert.equal(p.relative("/a/b/c", "/a"), "b/c");
  assert.equal(p.relative("/ab", "/a"), null);
  assert.equal(p.within("/ab", "/a"), false);
  assert.equal(p.tidy("/home/agent/x", "/home/agent"), "~/x");
  assert.equal(p.tidy("/volumes/data", "/volumes/data", true), "/volumes/data");
  assert.equal(p.tidy("/volumes/data/x%20y", "/volumes/data", true), "/volumes/data/x y");
  assert.equal(p.tidy("/home/agentx", "/home/agent"), "/home/agentx");
  assert.equal(p.tidy("/", "/"), "~");
});

test("paths below another one of a selection are dropped", () => {
  assert.deepEqual(p.topmost(["/a/b/c", "/a/b", "/ab", "/a/b-c", "/a/b"]), ["/a/b", "/a/b-c", "/ab"]);
});

test("a free name keeps the extension", () => {
  assert.equal(p.freeName("a.txt", new Set(["a.txt", "a%20(2).txt"])), "a%20(3).txt");
  assert.equal(p.freeName(".env", new Set([".env"])), ".env%20(2)");
  assert.equal(p.freeName("free", new Set()), "free");
});

test("typed names are validated", () => {
  for (const bad of ["", "  ", ".", "..", "a\0b", "ü".repeat(128)]) assert.notEqual(p.nameFault(bad), "", bad);
  for (const good of ["a", "...", "ü".repeat(127), "a\nb"]) assert.equal(p.nameFault(good), "", good);
});
