import assert from "node:assert/strict";
import { test } from "node:test";
import { Node, Tree } from "./model.js";

const entry = (name, type = "file", more = {}) => ({ name, key: name, type, size: 1, mode: "0644", ...more });
const names = (tree) => tree.rows.map((r) => (r instanceof Node ? `${"  ".repeat(r.level - 1)}${r.entry.name}` : `(${r.kind})`));

function home() {
  const tree = new Tree();
  tree.setRoot("/home");
  tree.fill(tree.root, [entry("docs", "folder"), entry("src", "folder"), entry(".env"), entry("a.txt"), entry("b.txt")]);
  return tree;
}

test("rows follow from the open folders", () => {
  const tree = home();
  const src = tree.find("/home/src");
  src.open = true;
  tree.fill(src, [entry("main.go")]);
  assert.deepEqual(names(tree), ["docs", "src", "  main.go", ".env", "a.txt", "b.txt"]);
  tree.showHidden = false;
  src.open = false;
  tree.flatten();
  assert.deepEqual(names(tree), ["docs", "src", "a.txt", "b.txt"]);
  assert.equal(tree.find("/home/src/main.go").entry.name, "main.go");
  assert.equal(tree.find("/elsewhere"), null);
});

test("refreshing a folder keeps open nodes and the selection", () => {
  const tree = home();
  const src = tree.find("/home/src");
  src.open = true;
  tree.fill(src, [entry("main.go")]);
  tree.select("/home/src/main.go");
  tree.select("/home/a.txt", "toggle");
  tree.fill(tree.root, [entry("new", "folder"), entry("src", "folder"), entry("b.txt")]);
  assert.equal(tree.find("/home/src"), src);
  assert.deepEqual(names(tree), ["new", "src", "  main.go", "b.txt"]);
  assert.deepEqual([...tree.selected], ["/home/src/main.go"]);
});

test("the cursor stays near when its row is removed", () => {
  const tree = home();
  tree.select("/home/a.txt");
  tree.fill(tree.root, [entry("docs", "folder"), entry("src", "folder"), entry(".env"), entry("b.txt")]);
  assert.equal(tree.cursor, "/home/b.txt");
});

test("a folder that became a file is not open any more", () => {
  const tree = home();
  const src = tree.find("/home/src");
  src.open = true;
  tree.fill(src, [entry("main.go")]);
  tree.fill(tree.root, [entry("src")]);
  assert.deepEqual(names(tree), ["src"]);
});

test("clicks and keys select as in other file managers", () => {
  const tree = home();
  tree.select("/home/src");
  tree.select("/home/a.txt", "range");
  assert.deepEqual(tree.selection().map((n) => n.key), ["src", ".env", "a.txt"]);
  tree.select("/home/.env", "toggle");
  tree.select("/home/docs", "toggle");
  assert.deepEqual(tree.selection().map((n) => n.key), ["docs", "src", "a.txt"]);
  tree.select("/home/b.txt", "move");
  assert.equal(tree.selected.size, 3);
  assert.equal(tree.cursor, "/home/b.txt");
  tree.select("/home/b.txt");
  assert.deepEqual(tree.selection().map((n) => n.key), ["b.txt"]);
});

test("without a selection the node at the cursor counts", () => {
  const tree = home();
  assert.deepEqual(tree.selection(), []);
  tree.select("/home/docs", "move");
  assert.deepEqual(tree.selection().map((n) => n.key), ["docs"]);
});

test("typed letters find the next matching name, and wrap around", () => {
  const tree = home();
  tree.select("/home/b.txt");
  assert.equal(tree.findByPrefix("d").key, "docs");
  assert.equal(tree.findByPrefix("a.").key, "a.txt");
  assert.equal(tree.findByPrefix("zz"), null);
});

test("the states of a folder are rows", () => {
  const tree = home();
  const docs = tree.find("/home/docs");
  docs.open = true;
  docs.state = "slow";
  tree.flatten();
  assert.deepEqual(names(tree).slice(0, 2), ["docs", "(loading)"]);
  tree.fail(docs, new Error("no"));
  assert.deepEqual(names(tree).slice(0, 2), ["docs", "(error)"]);
  tree.fill(docs, []);
  assert.deepEqual(names(tree).slice(0, 2), ["docs", "(empty)"]);
  tree.fill(docs, [entry("one")], { next: "more" });
  assert.deepEqual(names(tree).slice(0, 3), ["docs", "  one", "(more)"]);
  assert.equal(docs.children[0].of, -1, "how many there are is not known yet");
  tree.fill(docs, [entry("two")], { append: true });
  assert.deepEqual(names(tree).slice(0, 3), ["docs", "  one", "  two"]);
});

test("a folder with too many entries is truncated, with a note", () => {
  const tree = home();
  tree.fill(tree.root, [entry("a"), entry("b")], { next: "more", most: 3 });
  tree.fill(tree.root, [entry("c")], { next: "more", append: true, most: 3 });
  assert.deepEqual(names(tree), ["a", "b", "c", "(cut)"]);
});

test("a draft stays in its folder until it has a name", () => {
  const tree = home();
  tree.select("/home/a.txt");
  const draft = tree.draft(tree.root, "file");
  assert.equal(tree.rows[0], draft);
  assert.equal(tree.cursor, draft.path);
  tree.drop(draft);
  assert.equal(tree.rows.length, 5);
  assert.equal(tree.cursor, "/home/a.txt");
});

test("ten thousand entries become rows quickly", () => {
  const tree = home();
  const entries = Array.from({ length: 10_000 }, (_, i) => entry(`file-${i}`));
  const began = performance.now();
  tree.fill(tree.root, entries);
  tree.fill(tree.root, entries);
  assert.equal(tree.rows.length, 10_000);
  assert.ok(performance.now() - began < 500, `${performance.now() - began} ms`);
});
