import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { FakeElement, FakeStorage, fakePage } from "../js/fake_dom.js";

fakePage();
class Observer {
  observe() {}
  disconnect() {}
}
FakeElement.prototype.closest = () => null;
FakeElement.prototype.getBoundingClientRect = () => ({ top: 0, bottom: 0 });
FakeElement.prototype.querySelectorAll = () => [];
Object.assign(globalThis, { IntersectionObserver: Observer, ResizeObserver: Observer, sessionStorage: new FakeStorage(), requestIdleCallback: (f) => setImmediate(f), requestAnimationFrame: (f) => setImmediate(f) });
document.body.dataset = {};

const { live } = await import("../js/live.js");
let channels = []; // that are open
live.open = (topic, seen) => {
  const channel = Object.assign(new EventTarget(), { topic, seen, close: () => (channels = channels.filter((c) => c !== channel)) });
  channels.push(channel);
  return channel;
};
const tells = (change) => channels[0].dispatchEvent(Object.assign(new Event("change"), { data: JSON.stringify(change) }));
const ends = (data) => channels[0].dispatchEvent(Object.assign(new Event("ended"), { data }));

let asked = []; // "METHOD path", with the body
let answers = {}; // path → what is answered, a promise of it, or a status
globalThis.fetch = async (url, { method, body }) => {
  const path = `${method} ${url.split("?")[0].replace("/conversations", "") || "/"}${/before=\d+/.exec(url)?.[0] ?? ""}`;
  asked.push({ path, body: body && JSON.parse(body) });
  const answer = await answers[path];
  if (typeof answer === "number") return new Response(JSON.stringify({ detail: "no" }), { status: answer });
  return new Response(JSON.stringify(answer ?? {}), { status: 200 });
};
const { Chat } = await import("./chat.js");

const settled = async (n = 10) => {
  for (let i = 0; i < n; i++) await new Promise(setImmediate);
};
const conversation = (id, more) => ({ id, title: id, state: "idle", rev: 5, agent: "sandboxd", model: "", mode: "risky", used: { input_tokens: 0, output_tokens: 0, cached_tokens: 0, cost_usd: 0 }, ...more });
const view = (id, n = 1, more = {}) => ({ conversation: conversation(id), first: n, items: [{ n, kind: "message", text: `${id} says`, data: {} }], queue: [], ...more });

function pane(models = "[\"m\"]") {
  const root = new FakeElement("sandbox-chat");
  Object.assign(root.dataset, { base: "/conversations", box: "b", files: "/files", models });
  root.isConnected = true;
  const chat = new Chat(root);
  Object.assign(chat.list, { scrollTop: 1e6, scrollHeight: 1e6, clientHeight: 500 });
  return chat;
}
const texts = (chat) => chat.items.children.flatMap((group) => group.children).map((e) => e.textContent).join();

beforeEach(() => {
  [channels, asked] = [[], []];
  sessionStorage.clear();
  answers = { "GET /agents": { agents: [], problem: "" }, "GET /": { conversations: [conversation("aa"), conversation("bb")] }, "GET /aa": view("aa"), "GET /bb": view("bb") };
});

test("what is shown of one conversation is gone before another one is loaded", async () => {
  const chat = pane();
  await settled();
  assert.match(texts(chat), /aa says/);
  let answer;
  answers["GET /bb"] = new Promise((done) => (answer = done));
  chat.open("bb");
  assert.deepEqual([texts(chat), channels.length, chat.foot.textContent], ["", 0, "Loading…"]);
  answer(view("bb"));
  await settled();
  assert.match(texts(chat), /bb says/);
  chat.dispose();
  assert.equal(channels.length, 0);
});

test("a conversation that is opened twice is followed once", async () => {
  const chat = pane();
  chat.open("aa");
  chat.open("bb");
  chat.open("aa");
  await settled();
  assert.deepEqual(channels.map((c) => c.topic.split("?")[0]), ["/conversations/aa"]);
  chat.dispose();
});

test("what could not be loaded is loaded when the server answers again", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  answers["GET /"] = 503;
  const chat = pane();
  await settled();
  answers["GET /"] = { conversations: [conversation("aa")] };
  answers["GET /aa"] = 503;
  t.mock.timers.tick(1000);
  await settled();
  assert.equal(channels.length, 0);
  answers["GET /aa"] = view("aa");
  t.mock.timers.tick(1000);
  await settled();
  assert.deepEqual([texts(chat).includes("aa says"), channels.length], [true, 1]);
  ends(""); // the server stops
  t.mock.timers.tick(1000);
  assert.equal(channels.length, 1);
  chat.dispose();
});

test("of a conversation that is gone another one is shown, and of none a new one", async () => {
  answers["GET /aa"] = answers["GET /bb"] = 404;
  const chat = pane();
  await settled();
  assert.deepEqual([asked.map((a) => a.path).slice(0, 3), channels.length, chat.pick.value], [["GET /", "GET /aa", "GET /bb"], 0, ""]);
  chat.dispose();
});

test("a database that was put back is shown", async () => {
  const chat = pane();
  await settled();
  answers["GET /aa"] = { ...view("aa"), conversation: conversation("aa", { rev: 2 }), items: [{ n: 1, kind: "message", text: "older", data: {} }] };
  tells({ rev: 2, items: [] });
  await settled();
  assert.match(texts(chat), /older/);
  assert.equal(channels[0].seen, "after=2");
  chat.dispose();
});

test("a message whose answer was lost is the same message when it is sent again, and a later one is another", async () => {
  const chat = pane();
  await settled();
  answers["POST /aa/messages"] = 503;
  for (const last of [503, {}, {}]) {
    answers["POST /aa/messages"] = last;
    chat.composer.text.value = "do it";
    chat.composer.element.dispatchEvent(new Event("submit"));
    await settled();
  }
  const [one, two, three] = asked.filter((a) => a.path === "POST /aa/messages").map((a) => a.body.id);
  assert.equal(one, two);
  assert.notEqual(two, three);
  chat.dispose();
});

test("pages of items that are not shown do not end the reading on", async () => {
  answers["GET /aa"] = view("aa", 300);
  answers["GET /aabefore=300"] = { ...view("aa"), first: 200, items: [] };
  answers["GET /aabefore=200"] = { ...view("aa"), first: 1, items: [{ n: 7, kind: "message", text: "the first", data: {} }] };
  const chat = pane();
  await settled();
  chat.list.scrollTop = 0;
  chat.list.dispatchEvent(new Event("scroll"));
  await settled(30);
  assert.match(texts(chat), /the first.*aa says/);
  chat.dispose();
});

test("an edited message is of the conversation that it was begun in", async () => {
  const chat = pane();
  await settled();
  answers["POST /aa/edit"] = conversation("cc");
  answers["GET /cc"] = view("cc");
  const find = (e, is) => (is(e) ? e : (e.children ?? []).map((c) => find(c, is)).find(Boolean));
  find(chat.items, (e) => e.attributes?.title?.startsWith("Edit")).dispatchEvent(new Event("click"));
  chat.open("bb");
  await settled();
  chat.composer.text.value = "better";
  chat.composer.element.dispatchEvent(new Event("submit"));
  await settled();
  assert.deepEqual(asked.filter((a) => a.path.endsWith("/edit")), [{ path: "POST /aa/edit", body: { item: 1, text: "better" } }]);
  chat.dispose();
});

test("the model is sandboxd's own agent's to choose, and no other's", async () => {
  answers["GET /bb"] = view("bb", 1, { conversation: conversation("bb", { agent: "gemini" }) });
  answers["POST /"] = conversation("cc");
  answers["GET /cc"] = view("cc");
  const chat = pane();
  await settled();
  assert.equal(chat.model.parentElement.hidden, false);
  await chat.open("bb");
  assert.equal(chat.model.parentElement.hidden, true);
  answers["GET /"] = { conversations: [] };
  const empty = pane();
  await settled();
  assert.equal(empty.model.parentElement.hidden, false);
  empty.agents.chosen = "gemini";
  empty.agents.changed();
  assert.equal(empty.model.parentElement.hidden, true);
  empty.composer.text.value = "hello";
  empty.composer.element.dispatchEvent(new Event("submit"));
  await settled();
  assert.deepEqual(asked.find((a) => a.path === "POST /").body, { agent: "gemini", model: "", mode: "risky" });
  chat.dispose();
  empty.dispose();
});

test("agents can be chosen when sandboxd's own has no model", async () => {
  answers["GET /"] = { conversations: [] };
  const chat = pane("[]");
  await settled();
  assert.match(chat.foot.textContent, /No model yet.*Add a provider.*Start the demonstration.*Agent.*It has no model/);
  chat.dispose();
});

test("the mode that was chosen for a new conversation stays when the sandbox's state changes", async () => {
  answers["GET /"] = { conversations: [] };
  const chat = pane();
  await settled();
  assert.equal(chat.mode.value, "risky");
  chat.mode.value = "ask";
  chat.mode.dispatchEvent(new Event("change"));
  chat.refresh();
  assert.equal(chat.mode.value, "ask");
  chat.dispose();
});

test("until the conversations are known nothing can be chosen, and a message waits for the conversation it is shown in", async () => {
  let arrives;
  answers["GET /"] = new Promise((done) => (arrives = done));
  const chat = pane();
  await settled();
  assert.deepEqual([chat.mode.disabled, chat.model.disabled, chat.foot.textContent], [true, true, "Loading…"]);
  chat.composer.text.value = "do it";
  chat.composer.element.dispatchEvent(new Event("submit"));
  await settled();
  assert.deepEqual(asked.filter((a) => a.path.startsWith("POST")), []);
  arrives({ conversations: [conversation("aa")] });
  await settled();
  assert.deepEqual([chat.mode.disabled, chat.model.disabled], [false, false]);
  assert.deepEqual(asked.filter((a) => a.path.startsWith("POST")).map((a) => a.path), ["POST /aa/messages"]);
  chat.dispose();
});

test("a provider that is added on another page is found when this one is looked at again", async () => {
  answers["GET /"] = { conversations: [], models: [] };
  const chat = pane("[]");
  await settled();
  assert.match(chat.foot.textContent, /No model yet/);
  answers["GET /"] = { conversations: [], models: ["best"] };
  document.dispatchEvent(new Event("visibilitychange"));
  await settled();
  assert.doesNotMatch(chat.foot.textContent, /No model yet/);
  assert.equal(chat.model.value, "best");
  chat.dispose();
});

test("what the agent does is not called work while the server does not answer", async () => {
  answers["GET /aa"] = view("aa", 1, { conversation: conversation("aa", { state: "working" }) });
  const chat = pane();
  await settled();
  assert.equal(chat.foot.textContent, "Working…");
  channels[0].dispatchEvent(new Event("lost"));
  assert.equal(chat.foot.textContent, "Reconnecting…");
  channels[0].dispatchEvent(new Event("opened"));
  assert.equal(chat.foot.textContent, "Working…");
  chat.dispose();
});
