import assert from "node:assert/strict";
import { test } from "node:test";
import { leadOf, lineOf, pieces, piecesOf, plainName } from "./names.js";
import { encodeName } from "./paths.js";

const shown = (text) => plainName(encodeName(text));

test("invisible and bidirectional characters in names are escaped", () => {
  assert.equal(shown("line\nbreak"), "line\\nbreak");
  assert.equal(shown("esc\x1b[31m"), "esc\\e[31m");
  assert.equal(shown("rtl\u202egnp.exe"), "rtl\\u202egnp.exe");
  assert.equal(shown("a\u2066b\u200fc\u200bd\ufeffe"), "a\\u2066b\\u200fc\\u200bd\\ufeffe");
  assert.equal(shown("\ufefffirst"), "\\ufefffirst");
  assert.equal(shown("tag\u{e0041}"), "tag\\u{e0041}");
  assert.equal(shown("del\x7f nel\x85"), "del\\x7f nel\\x85");
  assert.equal(shown(" ends "), "·ends·");
  assert.equal(shown("  "), "··");
});

test("a match in a long line is near its beginning", () => {
  assert.equal(leadOf("  // "), "// ");
  assert.equal(leadOf("0123456789 the long line "), "…the long line ");
  assert.equal(leadOf("x".repeat(100)).length, 15);
});

test("lines of files keep their spaces", () => {
  assert.equal(lineOf("\tif x:\x1b[0m "), "  if x:\\e[0m ");
});

test("invalid UTF-8 is shown as bytes", () => {
  assert.equal(plainName("bad%FF%FEbytes"), "bad\\xff\\xfebytes");
  assert.equal(plainName("cut%E2%82"), "cut\\xe2\\x82");
  assert.equal(plainName("%C3%BC%FF%C3%BC"), "ü\\xffü");
  assert.equal(plainName("sur%ED%A0%80"), "sur\\xed\\xa0\\x80");
});

test("letters of any script, HTML and emoji are shown as text", () => {
  for (const name of ["<img src=x onerror=alert(1)>.txt", "עברית", "日本語.txt", "👩‍🚀.md", "a b", "naïve"]) assert.equal(shown(name), name);
  assert.deepEqual(pieces("a\nb"), [{ text: "a", escaped: false }, { text: "\\n", escaped: true }, { text: "b", escaped: false }]);
  assert.deepEqual(piecesOf("plain.txt"), [{ text: "plain.txt", escaped: false }]);
});
