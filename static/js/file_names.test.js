import assert from "node:assert/strict";
import { test } from "node:test";
import { FileNames, Names, marks } from "./file_names.js";

const home = "/home/agent";

function namesOf(folders) {
  const names = new Names(home);
  for (const f of folders) names.add(f);
  return names;
}

const found = (names, query, limit = 100) => names.find(query, limit).map((i) => names.paths[i]);

test("names come before paths, and whole ones first", () => {
  const names = namesOf([
    { folder: home, names: ["readme.md", "main.go"] },
    { folder: `${home}/main`, names: ["other.txt"] },
    { folder: `${home}/src`, names: ["domain.go", "main.go.bak", "Main", "m_a_i_n.c"] },
  ]);
  assert.deepEqual(found(names, "main"), ["src/Main", "main.go", "src/main.go.bak", "src/domain.go", "main/other.txt", "src/m_a_i_n.c"]);
  assert.deepEqual(found(names, "src/dom"), ["src/domain.go"]);
  assert.deepEqual(found(names, "srcdm"), ["src/domain.go"]);
  assert.deepEqual(found(names, "other txt"), ["main/other.txt"], "spaces do not count");
  assert.deepEqual(found(names, "zz"), []);
  assert.deepEqual(found(names, "", 2), ["readme.md", "main.go"]);
});

test("names that are not text keep their bytes", () => {
  const names = namesOf([{ folder: home, encoded: ["bad%ff"] }, { folder: `${home}/\ufffd`, folder_encoded: `${home}/%ff`, names: ["a b"] }, { folder: "/srv", names: ["x"] }]);
  assert.deepEqual(names.find("bad", 9).map((i) => names.encodedOf(i)), ["/home/agent/bad%FF"]);
  assert.deepEqual(names.find("ab", 9).map((i) => names.encodedOf(i)), ["/home/agent/%FF/a%20b"]);
  assert.equal(names.paths[0], "bad\ufffd");
});

test("marks are the letters that match", () => {
  assert.deepEqual(marks("src/main.go", "main"), [4, 5, 6, 7]);
  assert.deepEqual(marks("src/main.go", "src/m"), [0, 1, 2, 3, 4]);
  assert.deepEqual(marks("src/main.go", "mgo"), [4, 9, 10]);
  assert.deepEqual(marks("src/main.go", "zz"), []);
});

test("100,000 names answer a key in a moment, whatever they are called", () => {
  const names = new Names(home);
  for (let i = 0; i < 1000; i++) names.add({ folder: `${home}/folder${i % 10}/part${i}`, names: Array.from({ length: 100 }, (_, k) => `${k % 3 ? "file" : "a".repeat(200)}_${k}.js`) });
  assert.equal(names.size, 100_000);
  names.find("file", 100);
  const began = performance.now();
  for (const query of ["f", "file", "flder9", "part99file5", "aaaaaaaaab", "zzzz"]) names.find(query, 100);
  const each = (performance.now() - began) / 6;
  assert.ok(each < 500, `${each} ms`); // a few ms on an idle machine; a search that goes back and forth takes minutes
});

test("a list is read once, shown while it arrives, and kept when the next cannot be read", async () => {
  let now = 0;
  let answer = [{ folder: home, names: ["a"] }, { end: true, more: true }];
  let reads = 0;
  const list = new FileNames({ home, names: async function* () { reads++; yield* answer; } }, () => now);
  await list.refresh();
  await list.refresh();
  assert.deepEqual([list.names.paths, list.more, reads], [["a"], true, 1]);
  now = 60_000;
  answer = [{ folder: home, names: ["b"] }, { end: true, problem: { status: 409, detail: "It is stopped." } }];
  await list.refresh();
  assert.deepEqual([list.names.paths, list.problem.message, reads], [["a"], "It is stopped.", 2]);
});
