import assert from "node:assert/strict";
import { register } from "node:module";
import { test } from "node:test";
import { FakeDatabase, FakeElement, FakeStorage, fakePage, turns } from "../js/fake_dom.js";

// Stand-ins for what only browsers have. Style sheets are empty modules.
register(`data:text/javascript,${encodeURIComponent('export const load = (url, context, next) => (url.endsWith(".css") ? { format: "module", source: "", shortCircuit: true } : next(url, context));')}`);
fakePage();
const kept = new FakeStorage();
let define;
Object.assign(globalThis, {
  HTMLElement: FakeElement, customElements: { define: (_, element) => (define = element) }, addEventListener() {},
  localStorage: kept, fetch: async () => new Response("", { status: 404 }),
});
await import("./editor.js");

// store returns an IndexedDB without drafts, whose list comes when the test calls request.onsuccess().
function store() {
  const late = new FakeDatabase();
  late.getAll = () => (late.request = { result: [] });
  return (globalThis.indexedDB = late);
}

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
