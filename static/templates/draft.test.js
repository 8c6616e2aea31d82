import assert from "node:assert/strict";
import test from "node:test";
import { Draft, sorted, wrongPath } from "./draft.js";

const files = [{ path: "logo.png", text: null }, { path: "Dockerfile", text: "FROM x\n" }, { path: "template.yaml", text: "name: x\n" }];

test("a save sends what has changed, and keeps the rest", () => {
  const d = new Draft();
  d.take({ etag: '"1"', files });
  assert.equal(d.dirty, false);
  d.set("Dockerfile", "FROM y\n");
  d.set("files/run", "#!/bin/sh\n");
  d.delete("template.yaml");
  assert.deepEqual(Object.fromEntries(d.files), { "logo.png": null, Dockerfile: "FROM y\n", "files/run": "#!/bin/sh\n" });
  assert.deepEqual(d.paths, ["Dockerfile", "files/run", "logo.png"]);
});

test("what is typed during a save stays unsaved", () => {
  const d = new Draft();
  d.take({ etag: '"1"', files });
  d.set("Dockerfile", "FROM y\n");
  const sent = d.files;
  d.set("Dockerfile", "FROM yy\n");
  d.stored('"2"', sent);
  assert.equal(d.etag, '"2"');
  assert.equal(d.isDirty("Dockerfile"), true);
  assert.equal(d.isDirty("template.yaml"), false);
  d.set("Dockerfile", "FROM y\n");
  assert.equal(d.dirty, false);
});

test("the files that every template has come first", () => {
  assert.deepEqual(sorted(["b", "README.md", "a/x", "Dockerfile", "template.yaml"]), ["template.yaml", "Dockerfile", "README.md", "a/x", "b"]);
});

test("paths that cannot be are refused with a reason", () => {
  for (const path of ["", "/x", "x/", "a//b", "../x", "a/../b", " x", "a\\b"]) assert.match(wrongPath(path, []), /such as/, path);
  assert.match(wrongPath("a", ["a"]), /already/);
  assert.match(wrongPath("a/b", ["a"]), /folder/);
  assert.match(wrongPath("a", ["a/b"]), /folder/);
  assert.equal(wrongPath("files/setup.sh", ["template.yaml"]), "");
});
