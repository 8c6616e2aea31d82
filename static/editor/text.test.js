import assert from "node:assert/strict";
import { test } from "node:test";
import { hex, indentOf, read, completeLines, write } from "./text.js";

const bytes = (...parts) => Uint8Array.from(parts.flatMap((p) => (typeof p === "string" ? [...new TextEncoder().encode(p)] : p)));

test("unchanged text is written back byte for byte", () => {
  for (const [name, raw] of Object.entries({
    empty: bytes(""), unix: bytes("a\nb\n"), "no last line end": bytes("a\nb"), windows: bytes("a\r\nb\r\n"), "windows without end": bytes("a\r\nb"),
    "old mac": bytes("a\rb\r"), mixed: bytes("a\r\nb\nc\rd"), "bom": bytes([0xef, 0xbb, 0xbf], "a\n"), "bom and windows": bytes([0xef, 0xbb, 0xbf], "a\r\n\r\n"),
    "bom twice": bytes([0xef, 0xbb, 0xbf, 0xef, 0xbb, 0xbf], "a"), unicode: bytes("ü 日本 🎉\u2028x\u0085y\n"), controls: bytes("a\x1b[0m\x07\t\x7f\n"),
  })) {
    const found = read(raw);
    assert.equal(found.kind, "text", name);
    assert.deepEqual(write(found.text, found.how), raw, name);
  }
});

test("added lines get the file's line endings", () => {
  const { text, how } = read(bytes("a\r\nb\r\n"));
  assert.equal(text, "a\nb\n");
  assert.deepEqual(write(`${text}c\n`, how), bytes("a\r\nb\r\nc\r\n"));
});

test("text that is not UTF-8 is shown as such, and zero bytes make a file binary", () => {
  const old = read(bytes("Gr", [0xfc, 0xdf], "e"));
  assert.equal(old.text, "Grüße");
  assert.equal(old.how.encoding, "not UTF-8");
  assert.equal(read(bytes([0xff, 0xfe], [0x61, 0, 0x62, 0])).how.encoding, "UTF-16LE");
  assert.equal(read(bytes([0xff, 0xfe], [0x61, 0, 0x62, 0])).text, "ab");
  assert.equal(read(bytes("a\0b")).kind, "binary");
});

test("a partial file may end within a character and within a line", () => {
  const found = read(bytes("a\nb ", [0xe2, 0x82]), true);
  assert.equal(found.how.encoding, "UTF-8");
  assert.equal(completeLines(found.text), "a\n");
  assert.equal(read(bytes("a", [0xe2, 0x82])).how.encoding, "not UTF-8");
});

test("indentation is detected", () => {
  assert.equal(indentOf("a\n\tb\n\t\tc\n"), "\t");
  assert.equal(indentOf("a:\n  b:\n    c\n  d:\n"), "  ");
  assert.equal(indentOf("def f():\n    if x:\n        y\n    return\n"), "    ");
  assert.equal(indentOf("/**\n * note\n */\nif (a) {\n  b();\n}\n"), "  ");
  assert.equal(indentOf("none\nat all\n", "    "), "    ");
  assert.equal(indentOf(""), "  ");
});

test("bytes are shown with their offsets and printable characters", () => {
  const rows = hex(bytes("GIF89a", [0, 1, 2, 255], "0123456789"));
  assert.equal(rows.length, 2);
  assert.deepEqual(rows[0], { offset: "00000000", bytes: "47 49 46 38 39 61 00 01 02 ff 30 31 32 33 34 35", text: "GIF89a····012345" });
  assert.equal(rows[1].offset, "00000010");
  assert.equal(rows[1].text, "6789");
});
