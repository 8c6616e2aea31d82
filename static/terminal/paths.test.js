import assert from "node:assert/strict";
import { test } from "node:test";
import { findPaths, placesOf } from "./paths.js";

const found = (text) => findPaths(text).map((f) => [text.slice(f.start, f.end), f.path, f.line, f.column]);

test("paths are found in the output of compilers, grep and interpreters", () => {
  for (const [text, ...want] of [
    ["src/app.js:12:3: error: no", ["src/app.js:12:3", "src/app.js", 12, 3]],
    ["./main.go:7:2: undefined: x", ["./main.go:7:2", "./main.go", 7, 2]],
    ["cmd/x.go:40:func main() {", ["cmd/x.go:40", "cmd/x.go", 40, 0]],
    ["app.ts(12,3): error TS2304", ["app.ts", "app.ts", 12, 3]],
    ["    at run (/srv/app/index.mjs:10:15)", ["/srv/app/index.mjs:10:15", "/srv/app/index.mjs", 10, 15]],
    ['  File "/home/agent/a b.py", line 4, in <module>', ["/home/agent/a b.py", "/home/agent/a b.py", 4, 0]],
    ["  --> src/lib.rs:5:9", ["src/lib.rs:5:9", "src/lib.rs", 5, 9]],
    ["see ~/notes/über.md.", ["~/notes/über.md", "~/notes/über.md", 0, 0]],
    ["-rw-r--r-- 1 agent agent 5 Nov 21 09:00 report.csv", ["report.csv", "report.csv", 0, 0]],
    ["--- a/web/app.js", ["a/web/app.js", "a/web/app.js", 0, 0]],
    ["Makefile:3: *** missing separator", ["Makefile:3", "Makefile", 3, 0]],
    ["PATH=/usr/bin:/bin", ["/usr/bin", "/usr/bin", 0, 0]],
    ["cp '/tmp/x y' out/", ["/tmp/x y", "/tmp/x y", 0, 0], ["out/", "out/", 0, 0]],
    ["日本/文.txt:2", ["日本/文.txt:2", "日本/文.txt", 2, 0]],
  ]) assert.deepEqual(found(text), want, text);
});

test("other text is not a path", () => {
  for (const text of ["hello world", "https://example.com/a/b.js:1", "1.25.3", "12:30:01", "/", "...", "a - b", "3.14", "x".repeat(2000) + ".js", "1.5s", ""]) {
    assert.deepEqual(found(text), [], text);
  }
});

test("the number of paths in a line is bounded", () => {
  assert.equal(findPaths("a/b ".repeat(100)).length, 6);
});

test("paths are resolved in the working directory, then in the home", () => {
  assert.deepEqual(placesOf("/etc/hosts", "/srv", "/home/agent"), ["/etc/hosts"]);
  assert.deepEqual(placesOf("~/x", "/srv", "/home/agent"), ["/home/agent/x"]);
  assert.deepEqual(placesOf("../a/./b.js", "/srv/app", "/home/agent"), ["/srv/a/b.js", "/home/a/b.js"]);
  assert.deepEqual(placesOf("a/x.js", "/srv", ""), ["/srv/a/x.js", "/srv/x.js"]);
  assert.deepEqual(placesOf("x.js", "", "/home/agent"), ["/home/agent/x.js"]);
  assert.deepEqual(placesOf("../../../x", "/", "/"), ["/x"]);
});
