import assert from "node:assert/strict";
import { test } from "node:test";
import { fakePage } from "../js/fake_dom.js";

fakePage();
const { tryIt } = await import("./tries.js");

const api = { base: "/sandboxes/conversations/conversations", box: "b1" };
const message = { text: "go", agent: "sandboxd", model: "best", mode: "risky" };

// asked answers the next request, and gives what was asked.
function asked(status, answer, type = "application/json") {
  const requests = [];
  globalThis.fetch = async (url, options) => {
    requests.push([options.method, url, JSON.parse(options.body)]);
    return new Response(JSON.stringify(answer), { status, headers: { "Content-Type": type } });
  };
  return requests;
}

test("the message is sent with the number, and the page of the tries is what follows", async () => {
  const requests = asked(202, { id: "t1" });
  assert.equal(await tryIt(api, message, async () => "4"), "/sandboxes/conversations/tries/t1");
  assert.deepEqual(requests, [["POST", "/sandboxes/conversations/trials?sandbox_id=b1", { ...message, n: 4 }]]);
});

test("nothing is begun when the person changes their mind", async () => {
  const requests = asked(202, { id: "t1" });
  assert.equal(await tryIt(api, message, async () => ""), "");
  assert.equal(requests.length, 0);
});

test("what the server refuses is said", async () => {
  asked(409, { detail: "You have 16 tries already." }, "application/problem+json");
  await assert.rejects(tryIt(api, message, async () => "2"), /16 tries/);
});
