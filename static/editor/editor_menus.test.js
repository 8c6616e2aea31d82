import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeElement, fakePage } from "../js/fake_dom.js";
import { item } from "../files/menu.js";
import { linkItems } from "./editor_menus.js";

fakePage();
const links = (...list) => linkItems({}, { path: "/a/b.md", view: { links: list.map(([text, href]) => ({ text, href })) } });

test("the text of a link cannot affect how its host is displayed", () => {
  const [away, long, inside, nowhere] = links(["\u202egro.elpmaxe//:sptth\u2066", "https://evil.example/x"], ["😀".repeat(100), "https://a.example"], ["b\u202ec", "c.md"], ["x", "javascript:1"]);
  assert.equal(away.text, "\\u202egro.elpmaxe//:sptth\\u2066");
  assert.equal(away.where, "evil.example");
  assert.equal(long.text, `${"😀".repeat(59)}…`);
  assert.equal(inside.text, "b\\u202ec");
  assert.ok(nowhere.off && !nowhere.where);
});

test("a menu item shows its text and its target in separate elements", () => {
  const button = item({ icon: "open", text: "docs", where: "evil.example", act() {} });
  const all = (e) => [e, ...e.children.filter((c) => c instanceof FakeElement).flatMap(all)];
  assert.deepEqual(all(button).filter((e) => e.tag === "bdi").map((e) => e.textContent), ["docs", "evil.example"]);
});
