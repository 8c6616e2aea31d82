import assert from "node:assert/strict";
import { test } from "node:test";
import { fakePage } from "../js/fake_dom.js";

fakePage();
const { Composer } = await import("./composer.js");
const { Comments } = await import("./comments.js");

const settled = () => new Promise((resolve) => setImmediate(resolve));

// writer is a composer whose messages wait until they are answered.
function writer() {
  const sent = [];
  const kept = new Map();
  const comments = new Comments({ getItem: (key) => kept.get(key) ?? null, setItem: (key, value) => kept.set(key, value), removeItem: (key) => kept.delete(key) });
  comments.of("c1");
  const c = new Composer({ files: "/files", comments, stop() {}, send: (message) => new Promise((answer) => sent.push({ text: message.text, files: message.files, answer })) });
  c.drops(c.element);
  c.text.value = "";
  const says = (text) => {
    c.text.value = text;
    c.text.dispatchEvent(Object.assign(new Event("keydown"), { key: "Enter" }));
  };
  return { c, sent, says };
}

test("a message that is sent while the last one is on its way follows it", async () => {
  const { c, sent, says } = writer();
  says("one");
  says("two");
  assert.deepEqual([sent.map((m) => m.text), c.text.value], [["one"], "two"]);
  sent[0].answer(true);
  await settled();
  assert.deepEqual([sent.map((m) => m.text), c.text.value], [["one", "two"], ""]);
  sent[1].answer(true);
  await settled();
  assert.equal(sent.length, 2);
});

test("what was not taken is given back, and what was written meanwhile stays", async () => {
  const { c, sent, says } = writer();
  says("one");
  sent[0].answer(false);
  await settled();
  assert.equal(c.text.value, "one");
  says("one");
  says("two");
  sent[1].answer(false);
  await settled();
  assert.deepEqual([sent.length, c.text.value], [2, "one\n\ntwo"]);
});

test("a picture is shown before it is sent, and sent by its path", async () => {
  const { c, sent } = writer();
  const put = [];
  globalThis.fetch = async (address) => (put.push(address), { ok: true });
  globalThis.FileReader = class {
    readAsDataURL(file) {
      this.result = `data:${file.type};base64,eA==`;
      this.onload();
    }
  };
  const drop = (...files) => c.element.dispatchEvent(Object.assign(new Event("drop"), { dataTransfer: { files } }));
  drop({ name: "a.png", type: "image/png", size: 1 }, { name: "b.svg", type: "image/svg+xml", size: 1 }, { name: "c.png", type: "image/png", size: 6 << 20 });
  for (let i = 0; i < 10; i++) await settled();
  const all = c.chips.children.map((chip) => chip.children[0]);
  assert.match(put[0], /^\/files\?path=\.attachments%2F\d+-0-a\.png&parents=true$/); // in the home, not below the root
  assert.deepEqual([put.length, all.map((e) => e.tag)], [3, ["img", "svg", "svg"]]);
  assert.equal(all[0].src ?? all[0].attributes.src, "data:image/png;base64,eA==");
  c.element.dispatchEvent(Object.assign(new Event("submit"), { preventDefault() {} }));
  assert.equal(sent.length, 1);
  assert.deepEqual([sent[0].files.map((f) => f.type), Object.keys(sent[0].files[0])], [["image/png", "image/svg+xml", "image/png"], ["name", "type", "path"]]);
  sent[0].answer(true);
  await settled();
  assert.equal(c.chips.children.length, 0);
});

test("a message waits for its files, and one that does not arrive can be removed", async () => {
  const { c, sent, says } = writer();
  const puts = [];
  globalThis.fetch = (_, { signal }) => new Promise((resolve, reject) => {
    puts.push(resolve);
    signal.addEventListener("abort", () => reject(signal.reason));
  });
  c.element.dispatchEvent(Object.assign(new Event("drop"), { dataTransfer: { files: [{ name: "a.txt", type: "text/plain", size: 1 }, { name: "b.txt", type: "text/plain", size: 1 }] } }));
  says("read these");
  assert.deepEqual([puts.length, c.chips.children.length, sent.length, c.text.value], [2, 2, 0, "read these"]);
  puts[1]({ ok: true });
  await settled();
  assert.equal(sent.length, 0);
  c.chips.children[0].children.at(-1).dispatchEvent(new Event("click"));
  await settled();
  assert.deepEqual([sent.length, sent[0].text, sent[0].files.map((f) => f.name)], [1, "read these", ["b.txt"]]);
});

test("an edit that is begun while a message waits for its files is not sent with them", async () => {
  const { c, sent, says } = writer();
  const puts = [];
  globalThis.fetch = () => new Promise((resolve) => puts.push(resolve));
  c.element.dispatchEvent(Object.assign(new Event("drop"), { dataTransfer: { files: [{ name: "a.txt", type: "text/plain", size: 1 }] } }));
  says("read it");
  const edits = [];
  c.edit("old", async (text) => edits.push(text));
  puts[0]({ ok: true });
  await settled();
  assert.deepEqual([edits, sent.length, c.text.value], [[], 0, "old"]);
});

test("comments go with the next message, and come back when it is not taken", async () => {
  const { c, sent, says } = writer();
  c.comments.add({ path: "a.go", lines: [{ text: "+x", line: 3 }], text: "Why?" });
  says("");
  assert.deepEqual([sent[0].text, c.comments.list.length], ["`a.go:3`\n> +x\n\nWhy?", 0]);
  sent[0].answer(false);
  await settled();
  assert.equal(c.comments.list.length, 1);
  says("Also this.");
  assert.equal(sent[1].text, "`a.go:3`\n> +x\n\nWhy?\n\nAlso this.");
});

test("what was written before a message is edited comes back, and so does an edit that is not taken", async () => {
  const { c, sent, says } = writer();
  c.text.value = "draft";
  let edit = null;
  const edited = (text) => new Promise((answer) => (edit = { text, answer }));
  c.edit("old", edited);
  says("new");
  assert.deepEqual([edit.text, c.text.value, sent.length], ["new", "draft", 0]);
  edit.answer(false);
  await settled();
  assert.equal(c.text.value, "new");
  says("newer");
  edit.answer(true);
  await settled();
  assert.deepEqual([edit.text, c.text.value, sent.length], ["newer", "draft", 0]);
});

test("files wait for the next message while another one is edited, and Escape ends that", async () => {
  const { c, sent, says } = writer();
  globalThis.fetch = async () => ({ ok: true });
  const drop = async (name) => {
    c.element.dispatchEvent(Object.assign(new Event("drop"), { dataTransfer: { files: [{ name, type: "text/plain", size: 1 }] } }));
    for (let i = 0; i < 10; i++) await settled();
  };
  await drop("draft.txt");
  let edits = 0;
  c.edit("old", async () => (edits++, true));
  await drop("late.txt");
  assert.equal(c.chips.children.length, 0);
  says("");
  assert.equal(edits, 0);
  c.text.dispatchEvent(Object.assign(new Event("keydown"), { key: "Escape" }));
  assert.deepEqual([c.hint.hidden, c.text.value, c.chips.children.length], [true, "", 1]);
  says("with a file");
  assert.deepEqual([edits, sent[0].files.map((f) => f.name)], [0, ["draft.txt"]]);
});

test("a file that is dropped anywhere on the chat is put beside the message, and what is no file is left to the browser", async () => {
  globalThis.fetch = async () => ({ ok: true });
  const { c } = writer();
  const pane = document.createElement("div");
  c.drops(pane);
  const drag = (name, dataTransfer) => {
    const event = Object.assign(new Event(name, { cancelable: true }), { dataTransfer });
    pane.dispatchEvent(event);
    return event.defaultPrevented;
  };
  assert.deepEqual([drag("dragover", { types: ["text/plain"] }), drag("drop", { types: ["text/plain"], files: [] }), c.chips.children.length], [false, false, 0]);
  const dropped = { types: ["Files"], files: [{ name: "a.txt", type: "text/plain", size: 1 }] };
  assert.deepEqual([drag("dragover", dropped), drag("drop", dropped), c.chips.children.length], [true, true, 1]);
  await settled();
});
