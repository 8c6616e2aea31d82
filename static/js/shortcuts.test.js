import assert from "node:assert/strict";
import { test } from "node:test";
import { paletteKeys, shortcut, wanted } from "./shortcuts.js";

test("keys have their actions", () => {
  assert.deepEqual(shortcut("c", 0), { sheet: "/new" });
  assert.deepEqual(shortcut("/", 0), { focus: "filter" });
  shortcut("g", 1000);
  assert.deepEqual(shortcut("s", 1500), { go: "/" });
  shortcut("g", 1600);
  assert.deepEqual(shortcut("l", 1700), { go: "/logs" });
  shortcut("g", 2000);
  assert.equal(shortcut("s", 3000), null, "too late");
});

test("in a workspace letters have no actions", () => {
  for (const key of ["c", "/", "g", "s", "t"]) assert.equal(shortcut(key, 5000, true), null, key);
  assert.deepEqual(shortcut("?", 5000, true), { dialog: "help" });
});

const press = (key, more = {}) => ({ key, code: `Key${key.toUpperCase()}`, ctrlKey: true, metaKey: false, shiftKey: false, altKey: false, ...more });
const workspace = { mac: false, terminal: false, workspace: true, signedIn: true };

test("keys with a modifier open the palette and toggle panes", () => {
  assert.deepEqual(wanted(press("k"), workspace), { palette: "commands" });
  assert.deepEqual(wanted(press("p"), workspace), { palette: "files" });
  assert.deepEqual(wanted(press("b"), workspace), { toggle: "files" });
  assert.deepEqual(wanted(press("л", { code: "KeyK" }), workspace), { palette: "commands" }, "on a keyboard of another script");
  assert.equal(wanted(press("k", { altKey: true }), workspace), null);
  assert.equal(wanted(press("k"), { ...workspace, signedIn: false }), null);
});

test("on other pages only the palette opens: Ctrl+P prints", () => {
  assert.deepEqual(wanted(press("k"), { ...workspace, workspace: false }), { palette: "commands" });
  assert.equal(wanted(press("p"), { ...workspace, workspace: false }), null);
});

test("a terminal keeps the keys of its shell, and gives those with Shift", () => {
  for (const key of ["k", "p", "b"]) {
    assert.equal(wanted(press(key), { ...workspace, terminal: true }), null, key);
    assert.ok(wanted(press(key.toUpperCase(), { shiftKey: true }), { ...workspace, terminal: true }), key);
    assert.equal(wanted(press(key.toUpperCase(), { shiftKey: true }), workspace), null, key);
  }
  const tick = press("`", { code: "Backquote" });
  assert.deepEqual(wanted(tick, { ...workspace, terminal: true }), { toggle: "terminal" });
});

test("the palette's button names the keys that open it", () => {
  for (const [name, more] of [["Ctrl K", {}], ["Ctrl ⇧ K", { terminal: true }], ["⌘K", { mac: true }], ["⌘K", { mac: true, terminal: true }]]) {
    const where = { ...workspace, ...more };
    assert.equal(paletteKeys(where), name);
    assert.ok(wanted(press("k", { ctrlKey: name.startsWith("Ctrl"), metaKey: name.startsWith("⌘"), shiftKey: name.includes("⇧") }), where), name);
  }
});

test("a Mac has them with its command key everywhere", () => {
  const mac = { ...workspace, mac: true };
  for (const terminal of [false, true]) {
    assert.equal(wanted(press("k"), { ...mac, terminal }), null);
    assert.deepEqual(wanted(press("k", { ctrlKey: false, metaKey: true }), { ...mac, terminal }), { palette: "commands" });
  }
});
