import assert from "node:assert/strict";
import { test } from "node:test";
import { fakePage, turns } from "../js/fake_dom.js";

fakePage();
const { Agents, ready, stateText } = await import("./agents.js");

const agent = { id: "gemini", version: "2.0.0", installed_version: "", state: "available", percent: 0, problem: "" };

test("a conversation begins with an agent that is installed", () => {
  assert.equal(ready({ id: "sandboxd", state: "installed", installed_version: "" }), true);
  assert.equal(ready(agent), false);
  assert.equal(ready({ ...agent, state: "installed", installed_version: "2.0.0" }), true);
  assert.equal(ready({ ...agent, state: "failed", installed_version: "1.0.0" }), true);
  assert.equal(ready({ ...agent, state: "installing", installed_version: "1.0.0" }), false);
});

test("the chooser says what an agent is", () => {
  assert.equal(stateText(agent), "");
  assert.equal(stateText({ ...agent, state: "installing", percent: 40 }), "Installing… 40 %");
  assert.equal(stateText({ ...agent, state: "failed", problem: "The disk is full." }), "The disk is full.");
  assert.equal(stateText({ ...agent, state: "installed", installed_version: "2.0.0" }), "");
  assert.match(stateText({ ...agent, state: "installed", installed_version: "1.0.0" }), /^Version 1.0.0; 2.0.0/);
});

test("without a model sandboxd's own agent cannot be chosen, and says why, but another one can", async () => {
  const api = { ask: async () => ({ agents: [{ ...agent, name: "Gemini", summary: "", installed_version: "2.0.0", state: "installed" }], problem: "" }) };
  let changed = 0;
  const agents = new Agents(api, (act) => act(), () => changed++);
  agents.models = false;
  await agents.show();
  await turns();
  const rows = agents.element.children.slice(1);
  const radios = rows.map((row) => row.children[0].children[0]);
  assert.deepEqual(radios.map((r) => [r.attributes.value, "disabled" in r.attributes, "checked" in r.attributes]), [["sandboxd", true, false], ["gemini", false, false]]);
  assert.match(rows[0].textContent, /It has no model/);
  const before = changed;
  radios[1].dispatchEvent(new Event("change"));
  assert.deepEqual([agents.chosen, changed], ["gemini", before + 1]);
  agents.models = true;
  assert.equal("disabled" in agents.element.children[1].children[0].children[0].attributes, false);
});
