import assert from "node:assert/strict";
import { test } from "node:test";
import { newsText } from "./alert_news.js";

test("several alerts fit one toast", () => {
  assert.equal(newsText(["lab: it is full"]), "lab: it is full");
  assert.equal(newsText(["lab: it is full", "den: no", "x: no"]), "lab: it is full – and 2 more");
});
