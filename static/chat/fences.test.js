import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { marked } from "marked";
import { fencesOf, numberOf } from "./fences.js";
import { pieceOf } from "./pieces.js";

const cases = JSON.parse(readFileSync(new URL("./fence_cases.json", import.meta.url)));

// fenced collects the fenced code that marked finds, but for that in quotes.
function fenced(tokens, found = []) {
  for (const t of tokens ?? []) {
    if (t.type === "code" && t.codeBlockStyle !== "indented") found.push(t.text);
    if (t.type === "list") for (const item of t.items) fenced(item.tokens, found);
  }
  return found;
}

// otherwise: marked draws something else, which then has no button.
for (const { what, text, blocks, otherwise } of cases) {
  test(`fences: ${what}`, () => {
    assert.deepEqual(fencesOf(text).map(({ language, code }) => ({ language, code })), blocks);
    if (!otherwise) assert.deepEqual(fenced(marked.lexer(text)).map((code) => code.trimEnd()), blocks.map((b) => b.code.trimEnd()), "what marked draws");
  });
}

test("a text in which very many list items end at once is searched in time", () => {
  const began = performance.now();
  fencesOf(`${"- ".repeat(3 << 17)}\n${" ".repeat(1 << 18)}x`);
  assert.ok(performance.now() - began < 2000);
});

test("a block of a piece has the number that it has in the whole text, or none", () => {
  const item = (n) => `    words ${n}\n\n    \`\`\`sh\n    echo ${n}\n    \`\`\`\n\n`;
  const text = `1.  one\n\n${Array.from({ length: 900 }, (_, n) => item(n)).join("")}`;
  const blocks = fencesOf(text);
  assert.equal(blocks.length, 900);
  let shown = 0;
  for (let at = 0; at < text.length; ) {
    const n = pieceOf(text.slice(at)) || text.length - at;
    for (const b of fencesOf(text.slice(at, at + n))) {
      const number = numberOf(text, at + b.from, b.code);
      assert.ok(number < 0 || blocks[number].code === b.code);
      shown++;
    }
    at += n;
  }
  assert.ok(shown > 0 && shown < 900, "a long list is split, and what is within it is no block for its piece alone");
});
