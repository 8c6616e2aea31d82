import assert from "node:assert/strict";
import { test } from "node:test";
import DOMPurify from "dompurify";
import { Lexer } from "marked";
import { fakePage } from "../js/fake_dom.js";

fakePage();
Object.defineProperty(globalThis, "performance", { value: { now: () => 0 } }); // no slice is ever over, and no part waits for another
DOMPurify.sanitize = (html) => { // there is no parser of HTML here: what marked gave is shown as it is
  const fragment = document.createDocumentFragment();
  fragment.append(html);
  return Object.assign(fragment, { querySelectorAll: () => [] });
};
const parsed = []; // each text that was parsed
const lex = Lexer.lex;
Lexer.lex = (text, options) => {
  parsed.push(text);
  return lex(text, options);
};
const { viewOf } = await import("./items.js");

const kinds = [
  (n) => `Paragraph ${n} has **bold** words and \`code\`, and ends.`,
  (n) => `- list ${n}\n- with more\n  - and what is below it`,
  (n) => `| table ${n} | of two |\n| --- | --- |\n| a | b |`,
  (n) => `> quote ${n}\n> of two lines`,
  (n) => `## Heading ${n}`,
  (n) => `1. first of ${n}\n2. second, with\n   a line of its own`,
];

test("a block that is complete is parsed once while an answer streams", () => {
  const blocks = Array.from({ length: 120 }, (_, n) => kinds[n % kinds.length](`number${n}.`));
  const view = viewOf({ n: 1, kind: "text", text: "", open: true, data: {} }, {});
  let text = "";
  const since = blocks.map(() => 0); // how often each was parsed after the next one began
  blocks.forEach((block, n) => {
    const began = parsed.length;
    for (const word of `${block}\n\n`.split(/(?<=\s)/)) view.update({ n: 1, kind: "text", text: (text += word), open: true, data: {} });
    assert.ok(parsed.length > began, `block ${n} is not drawn while it comes`);
    for (let earlier = 0; earlier < n; earlier++) since[earlier] += parsed.slice(began).filter((p) => p.includes(blocks[earlier])).length;
  });
  view.update({ n: 1, kind: "text", text, open: false, data: {} });
  assert.deepEqual(since.slice(0, -1), since.slice(0, -1).fill(1));
  assert.equal(view.element.textContent.match(/number\d+\./g).length, blocks.length); // each is there
  const long = parsed.reduce((n, p) => n + p.length, 0);
  assert.ok(long < 40 * text.length, `${long} characters were parsed of ${text.length}`); // and not the square of it
});
