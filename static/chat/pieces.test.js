import assert from "node:assert/strict";
import { test } from "node:test";
import { marked } from "marked";
import { blocksOf, deep, longest, pieceOf } from "./pieces.js";

test("blocks end at blank lines outside of fences", () => {
  assert.deepEqual(blocksOf("a\n\nb"), { whole: "a\n\n", rest: "b" });
  assert.deepEqual(blocksOf("```js\na\n\nb"), { whole: "", rest: "```js\na\n\nb" });
  assert.deepEqual(blocksOf("```js\na\n\nb\n```\n\nc"), { whole: "```js\na\n\nb\n```\n\n", rest: "c" });
  assert.deepEqual(blocksOf("~~~~\n```\n\n~~~\n\nc"), { whole: "", rest: "~~~~\n```\n\n~~~\n\nc" });
  assert.deepEqual(blocksOf("1. a\n\n   ```js\n   x\n   ```\n\nb"), { whole: "1. a\n\n   ```js\n   x\n   ```\n\n", rest: "b" });
});

test("pieces add up to the text, and none is much longer than it has to be", () => {
  const text = Array.from({ length: 2000 }, (_, i) => `Paragraph ${i} has **some** words.\n\n`).join("") + "end";
  let [at, count] = [0, 0];
  for (let n = pieceOf(text); n; n = pieceOf(text.slice(at))) {
    assert.ok(n <= 4100, `${n}`);
    at += n;
    count++;
  }
  assert.equal(text.slice(at), "end");
  assert.ok(count >= 15 && count < 40, `${count}`);
  const list = "- item\n\n  more of it\n\n".repeat(3000);
  assert.ok(pieceOf(list) > 0 && pieceOf(list) < longest);
});

// hostile are texts of a model that wants the pane to hang.
const hostile = {
  "a million nested quotes": ">".repeat(1_000_000),
  "quotes with spaces": "> ".repeat(500_000),
  "nested lists": "- ".repeat(500_000),
  "nested numbers": "1. ".repeat(300_000),
  "open brackets": "[".repeat(1_000_000),
  "pairs of brackets": "[](".repeat(300_000),
  "links in links": "[a](".repeat(200_000),
  "stars": "*a **b ".repeat(150_000),
  "underscores": "_a_b".repeat(250_000),
  "backticks": "`a``b```".repeat(120_000),
  "tags": "<a ".repeat(300_000),
  "comments": "<!--".repeat(250_000),
  "a huge word": "x".repeat(1_000_000),
  "a huge table": `|a|b|\n|-|-|\n${"|1|2|\n".repeat(150_000)}`,
  "a wide table": `${"|a".repeat(200_000)}\n${"|-".repeat(200_000)}\n`,
  "paragraphs": "a\n\n".repeat(300_000),
  "fences": "```\n".repeat(250_000),
  "references": "[a]: <".repeat(150_000),
  "entities": "&#0;&amp;".repeat(110_000),
  "spaces": `a${" ".repeat(1_000_000)}b`,
  "lines": "a\n".repeat(500_000),
  "tildes": "~~a".repeat(300_000),
  "deep indentation": Array.from({ length: 1400 }, (_, i) => `${" ".repeat(i)}- a`).join("\n"),
  "addresses": "http://a.b/(".repeat(80_000),
  "mail addresses": "a.".repeat(400_000) + "@",
};

for (const [what, text] of Object.entries(hostile)) {
  test(`a hostile text is parsed in time: ${what}`, () => {
    let slowest = 0;
    for (let at = 0, pieces = 0; at < Math.min(text.length, 100_000); pieces++) {
      const n = pieceOf(text.slice(at, at + 100_000)) || text.length - at;
      const part = text.slice(at, at + n);
      at += n;
      const began = performance.now();
      if (part.length <= longest && !deep(part)) marked.parse(part);
      slowest = Math.max(slowest, performance.now() - began);
      assert.ok(pieces < 50_000);
    }
    const most = text.slice(0, longest);
    const began = performance.now();
    if (!deep(most)) marked.parse(most);
    slowest = Math.max(slowest, performance.now() - began);
    assert.ok(slowest < 1000, `one piece took ${slowest.toFixed()} ms`);
  });
}
