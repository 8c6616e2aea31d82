import assert from "node:assert/strict";
import { test } from "node:test";
import { fakePage } from "../js/fake_dom.js";

fakePage();
const slices = [];
globalThis.requestIdleCallback = (f) => slices.push(f);
const { viewOf } = await import("./items.js");

// images gives the addresses of the pictures in an element, and what is beside them.
const images = (e) => (e.tag === "img" ? [e.src ?? e.attributes.src] : (e.children ?? []).flatMap(images));
const draw = (kind, data) => viewOf({ n: 1, kind, text: "see", data }, {}).element;
const data = "iVBORw0KGgo=";

test("pictures are drawn from their bytes, and of four types only", () => {
  const files = [{ name: "a.png", type: "image/png", path: "a.png", data }, { name: "b.svg", type: "image/svg+xml", data: "PHN2Zz4=" }, { name: "c.png", type: "image/png", path: "https://example.com/c.png" }, { name: "d", type: 'image/png" onerror="x', data }];
  assert.deepEqual(images(draw("message", { files })), [`data:image/png;base64,${data}`]);
  assert.ok(draw("message", { files }).textContent.includes("b.svg"));
  const call = { tool: "browser_screenshot", title: "Look at the page", status: "ok", pictures: [{ type: "image/png", data }, { type: "text/html", data: "PGI+" }, { type: "image/gif" }] };
  const drawn = draw("call", call);
  assert.deepEqual([images(drawn), drawn.open], [[`data:image/png;base64,${data}`], true]);
});

// all gives the elements in one that a test is true of.
const all = (e, is) => [...(is(e) ? [e] : []), ...(e.children ?? []).flatMap((c) => all(c, is))];
const byText = (e, text) => all(e, (x) => x.tag === "button" && x.textContent === text);
const settled = () => new Promise((resolve) => setImmediate(resolve));

test("a Run button runs the code that is beside it, once for a double click", async () => {
  const ran = [];
  let answer = () => {};
  const acts = { run: (...what) => (ran.push(what), new Promise((done) => (answer = done))) };
  const text = "```sh\necho one\n```\n\n```py\nprint(2)\n```";
  const { element } = viewOf({ n: 7, kind: "message", text, data: {} }, acts);
  const [, second] = byText(element, "Run");
  second.dispatchEvent(new Event("click"));
  second.dispatchEvent(new Event("click"));
  assert.deepEqual([ran, second.attributes.disabled], [[[7, 1, "print(2)"]], undefined]);
  answer();
  await settled();
  second.dispatchEvent(new Event("click"));
  assert.equal(ran.length, 2);
});

test("an answer's block has the number that it has in the whole answer", () => {
  const ran = [];
  const { element } = viewOf({ n: 7, kind: "text", text: "```sh\r\necho one\r\n```", data: {} }, { run: (...what) => ran.push(what) });
  byText(element, "Run")[0].dispatchEvent(new Event("click"));
  assert.deepEqual(ran, [[7, 0, "echo one"]]);
});

test("code is not run while it is being written, nor when only its beginning is shown", () => {
  const long = `\`\`\`sh\n${"echo 1\n".repeat(20_000)}rm -rf ~\n\`\`\``;
  for (const [text, open] of [["```sh\necho one", true], [long, false]]) {
    assert.equal(byText(viewOf({ n: 7, kind: "text", text, open, data: {} }, { run() {} }).element, "Run").length, 0);
  }
});

test("what hides in code is shown", () => {
  const { element } = viewOf({ n: 7, kind: "text", text: "```sh\necho \u202e\u2066x\ufe0f\n```", data: {} }, { run() {} });
  assert.match(element.textContent, /echo ⟨U\+202E⟩⟨U\+2066⟩x⟨U\+FE0F⟩.*not visible/s);
});

// counted counts how often the children of an element are replaced.
function counted(e) {
  let n = 0;
  const replace = e.replaceChildren.bind(e);
  e.replaceChildren = (...children) => (n++, replace(...children));
  return () => n;
}

test("a call that writes draws only what is new", () => {
  const item = { n: 1, kind: "call", text: "", output: "a\n", open: true, data: { tool: "run_command", code: "make" } };
  const view = viewOf(item, {});
  const state = counted(all(view.element, (e) => e.attributes?.class === "chat-call-state")[0]);
  const [output] = all(view.element, (e) => e.attributes?.class === "chat-output");
  const written = counted(output);
  view.update({ ...item, output: "a\nb\n" });
  assert.deepEqual([state(), written(), output.children], [0, 0, ["a\n", "b\n"]]);
  view.update({ ...item, output: "a\nb\n", open: false, data: { ...item.data, status: "ok" } });
  assert.equal(state(), 1);
});

test("an answer that is being written is not lost when the question is told of again", () => {
  const ask = { n: 1, kind: "question", text: "", open: true, data: { id: "q", title: "Which?", free: true } };
  const view = viewOf(ask, { answer() {} });
  const drawn = counted(view.element);
  view.update({ ...ask, data: { ...ask.data } });
  assert.equal(drawn(), 0);
  view.update({ ...ask, open: false, data: { ...ask.data, answer: "this" } });
  assert.equal(drawn(), 1);
});

test("an undo says that it is under way, and is asked for once", async () => {
  const [asked, answers] = [[], []];
  const view = viewOf({ n: 1, kind: "checkpoint", turn: 3, data: { snapshot: "s1" } }, { undo: (turn) => (asked.push(turn), new Promise((answer) => answers.push(answer))) });
  view.update({ n: 1, kind: "checkpoint", turn: 3, data: { snapshot: "s1" } });
  const press = () => view.element.children.at(-1).dispatchEvent(new Event("click"));
  press();
  press();
  assert.deepEqual([asked, view.element.textContent], [[3], "CheckpointUndoing…"]);
  answers[0]();
  await new Promise(setImmediate);
  assert.equal(view.element.textContent, "CheckpointUndo");
  assert.match(view.element.children.at(-1).attributes.title, /Programs that run in the sandbox end\./);
});

test("an undo is not offered while the agent works", () => {
  const asked = [];
  const view = viewOf({ n: 1, kind: "checkpoint", turn: 3, data: { snapshot: "s1" } }, { undo: (turn) => asked.push(turn) });
  const press = () => view.element.children.at(-1).dispatchEvent(new Event("click"));
  view.busy(true);
  press();
  assert.deepEqual([asked, view.element.children.at(-1).attributes["aria-disabled"]], [[], "true"]);
  assert.match(view.element.title, /while the agent works/);
  view.busy(false);
  press();
  assert.deepEqual(asked, [3]);
});

test("what was asked is folded once it is answered, unless it is short", () => {
  const ask = (text, answer) => viewOf({ n: 1, kind: "question", open: !answer, data: { id: "q", title: "Write a file", text, answer } }, { answer() {} }).element;
  const folds = (e) => all(e, (x) => x.tag === "details").length;
  const file = "a.txt\n\n1\n2\n3\n4\n5\n";
  assert.deepEqual([folds(ask(file)), folds(ask(file, "allow")), folds(ask("make", "allow"))], [0, 1, 0]);
});

test("comments in a message are drawn with the lines that they are about", () => {
  const { element } = viewOf({ n: 7, kind: "message", text: "`a.go:2-3`\n> -old\n> +new\n\nWhy?\n\nThen test it.", data: {} }, { run() {} });
  const [figure] = all(element, (e) => e.tag === "figure");
  assert.deepEqual([figure.children[0].textContent, figure.children[1].children.map((l) => [l.attributes.class, l.textContent])], ["a.go:2-3", [["removed", "-old"], ["added", "+new"]]]);
  assert.ok(element.textContent.includes("Why?\n\nThen test it.") && !element.textContent.includes("`"));
});
