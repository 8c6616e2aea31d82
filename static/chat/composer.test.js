import assert from "node:assert/strict";
import { test } from "node:test";
import { fakePage } from "../js/fake_dom.js";

fakePage();
const { Composer } = await import("./composer.js");

const settled = () => new Promise((resolve) => setImmediate(resolve));

// writer is a composer whose messages wait until they are answered.
function writer() {
  const sent = [];
  const c = new Composer({ files: "/files", stop() {}, send: (message) => new Promise((answer) => sent.push({ text: message.text, files: message.files, answer })) });
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
  assert.deepEqual([sent.length, c.text.value], [2, "two"]);
});

test("a file is put into the home, and sent by its path", async () => {
  const { c, sent } = writer();
  const put = [];
  globalThis.fetch = async (address) => (put.push(address), { ok: true });
  c.element.dispatchEvent(Object.assign(new Event("drop"), { dataTransfer: { files: [{ name: "a b.txt", type: "text/plain" }] } }));
  for (let i = 0; i < 10; i++) await settled();
  assert.match(put[0], /^\/files\?path=\.attachments%2F\d+-a_b\.txt&parents=true$/);
  c.element.dispatchEvent(Object.assign(new Event("submit"), { preventDefault() {} }));
  assert.deepEqual(sent[0].files.map((f) => [f.name, f.type, f.path.replace(/\d+/, "N")]), [["a b.txt", "text/plain", ".attachments/N-a_b.txt"]]);
  sent[0].answer(true);
  await settled();
  assert.equal(c.chips.children.length, 0);
});
