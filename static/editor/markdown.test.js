import assert from "node:assert/strict";
import { test } from "node:test";
import { fakePage } from "../js/fake_dom.js";
import { budget, embedImages, slug } from "./markdown.js";

fakePage();

test("headings get ids, in bounded time", () => {
  assert.equal(slug("Über <b>Alles</b>, or so"), "über-alles-or-so");
  const began = performance.now();
  for (const c of ["<", "< ", "<a"]) assert.ok(slug(c.repeat(300_000)).length <= 200);
  assert.ok(performance.now() - began < 20_000, `${performance.now() - began} ms`);
});

test("the images of a document share one budget", async () => {
  globalThis.FileReader = class {
    readAsDataURL(blob) {
      this.result = `data:image/png;base64,${"A".repeat(blob.size)}`;
      queueMicrotask(() => this.onload());
    }
  };
  let asked = 0;
  const big = 3 << 20;
  const files = (size) => ({ url: (path) => path, ask: async () => (asked++, new Response(new Blob([new Uint8Array(size)]), { headers: { "Content-Type": "image/png" } })) });
  const shown = [];
  const part = (n) => ({ querySelectorAll: () => Array.from({ length: n }, () => {
    const img = Object.assign(document.createElement("img"), { attributes: { src: "p.png" }, alt: "" });
    shown.push(img);
    return img;
  }) });
  const count = budget();
  for (let cell = 0; cell < 5; cell++) await embedImages(part(20), { files: files(10), path: "/a.ipynb", left: count });
  assert.equal(asked, 40);
  shown.length = 0;
  const room = budget();
  for (let cell = 0; cell < 20; cell++) await embedImages(part(1), { files: files(big), path: "/a.ipynb", left: room });
  assert.equal(shown.filter((img) => !img.replaced).length, 7, "as many as come to 24 MiB");
});
