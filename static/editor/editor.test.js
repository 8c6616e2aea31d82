import assert from "node:assert/strict";
import { register } from "node:module";
import { test } from "node:test";
import { FakeElement, fakePage } from "../js/fake_dom.js";

// Stand-ins for what only browsers have. Style sheets are empty modules.
register(`data:text/javascript,${encodeURIComponent('export const load = (url, context, next) => (url.endsWith(".css") ? { format: "module", source: "", shortCircuit: true } : next(url, context));')}`);
fakePage();
const kept = new Map();
let define;
Object.assign(globalThis, {
  HTMLElement: FakeElement, customElements: { define: (_, element) => (define = element) }, addEventListener() {},
  localStorage: { getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => kept.set(k, v), removeItem: (k) => kept.delete(k) },
  fetch: async () => new Response("", { status: 404 }),
});
await import("./editor.js");

// An IndexedDB without drafts, which answers when the test lets it.
function store() {
  const request = (result) => {
    const r = { result };
    queueMicrotask(() => r.onsuccess?.());
    return r;
  };
  const late = {};
  globalThis.indexedDB = { open: () => request({ transaction: () => ({ objectStore: () => ({
    getAll: () => (late.request = { result: [] }), getAllKeys: () => request([]), get: () => request(), put: () => request(), delete: () => request(),
  }) }) }) };
  return late;
}

const turns = async () => {
  for (let i = 0; i < 20; i++) await new Promise(setImmediate);
};

function editor(tabs, shown) {
  kept.clear();
  const element = new define("sandbox-editor");
  Object.assign(element.dataset, { home: "/home/agent", base: "/sandboxes/lab/files", box: "1", state: "running" });
  element.parentElement = new FakeElement("div");
  kept.set(`tabs ${element.owner}`, JSON.stringify({ tabs, shown, front: false }));
  return element;
}

test("a file opened while drafts are read is shown once, and stays shown", async () => {
  const late = store();
  const element = editor(["/home/agent/a.txt", "/home/agent/b.txt"], "/home/agent/a.txt");
  element.connectedCallback();
  await turns();
  document.dispatchEvent(new CustomEvent("sandboxd:open", { detail: { encoded: "/home/agent/b.txt" } }));
  await turns();
  late.request.onsuccess();
  await turns();
  assert.deepEqual(element.tabs.map((t) => t.path), ["/home/agent/b.txt", "/home/agent/a.txt"]);
  assert.deepEqual(element.tabs.map((t) => t.pick.getAttribute("aria-selected")), ["true", "false"]);
  assert.deepEqual(JSON.parse(kept.get(`tabs ${element.owner}`)), { tabs: ["/home/agent/b.txt", "/home/agent/a.txt"], shown: "/home/agent/b.txt", front: false });
  element.disconnectedCallback();
});

test("tabs are restored after a reload, with the one that was shown", async () => {
  const late = store();
  const element = editor(["/home/agent/a.txt", "/home/agent/b.txt"], "/home/agent/b.txt");
  element.connectedCallback();
  await turns();
  late.request.onsuccess();
  await turns();
  assert.deepEqual(element.tabs.map((t) => [t.path, t.pick.getAttribute("aria-selected")]), [["/home/agent/a.txt", "false"], ["/home/agent/b.txt", "true"]]);
  element.disconnectedCallback();
});
