import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeElement, fakePage } from "../js/fake_dom.js";

fakePage();
const { Commands, matching } = await import("./commands.js");

const all = [{ name: "review", about: "Look at it" }, { name: "reset", about: "" }, { name: "x\u202e", about: "" }];

// field is a message with the list of its commands.
function field() {
  const text = new FakeElement("textarea");
  text.value = "";
  const commands = new Commands(text, () => {});
  commands.offer(all);
  const writes = (value) => {
    text.value = value;
    text.dispatchEvent(new Event("input"));
  };
  const options = () => commands.element.children.map((o) => o.textContent);
  const active = () => commands.element.children.find((o) => o.attributes.id === text.attributes["aria-activedescendant"]);
  return { text, commands, writes, options, active };
}

test("a message becomes a command while it is a slash and the beginning of a name", () => {
  const names = (text) => matching(all, text).map((c) => c.name.slice(0, 6));
  assert.deepEqual([names("/"), names("/RE"), names("/rev"), names("/z")], [["review", "reset", "x\u202e"], ["review", "reset"], ["review"], []]);
  assert.deepEqual([names(""), names("review"), names("/review "), names("see /re"), names("/re\n")], [[], [], [], [], []]);
});

test("the list is shown, filtered and gone, and nothing hides in it", () => {
  const { text, commands, writes, options } = field();
  assert.deepEqual([commands.element.hidden, text.attributes.role, text.attributes["aria-expanded"]], [true, "combobox", "false"]);
  writes("/");
  assert.deepEqual([options(), text.attributes["aria-expanded"]], [["/reviewLook at it", "/reset", "/x⟨U+202E⟩"], "true"]);
  writes("/rese");
  assert.deepEqual(options(), ["/reset"]);
  writes("/reset it");
  assert.deepEqual([commands.element.hidden, text.attributes["aria-expanded"], text.attributes["aria-activedescendant"]], [true, "false", undefined]);
  commands.offer([]);
  writes("/");
  assert.deepEqual([commands.element.hidden, text.attributes.role, text.attributes["aria-expanded"]], [true, undefined, undefined]);
});

test("keys choose a command", () => {
  const { text, commands, writes, active } = field();
  const press = (key, more) => commands.key({ key, ...more });
  assert.equal(press("ArrowDown"), false);
  writes("/re");
  assert.match(active().textContent, /review/);
  assert.equal(press("Enter", { isComposing: true }), false);
  assert.equal(press("ArrowUp"), true);
  assert.deepEqual([active().textContent, active().attributes["aria-selected"]], ["/reset", "true"]);
  press("ArrowDown");
  press("Enter");
  assert.deepEqual([text.value, commands.element.hidden, press("Enter")], ["/review ", true, false]);
  writes("/rev");
  assert.equal(press("Tab", { shiftKey: true }), false);
  press("Tab");
  assert.equal(text.value, "/review ");
  writes("/review");
  assert.equal(press("Enter"), false); // it is written whole, and sent
});

test("Escape closes the list until another message begins", () => {
  const { commands, writes } = field();
  writes("/r");
  assert.equal(commands.key({ key: "Escape" }), true);
  writes("/re");
  assert.deepEqual([commands.element.hidden, commands.key({ key: "Escape" })], [true, false]);
  writes("");
  writes("/re");
  assert.equal(commands.element.hidden, false);
});

test("a press chooses a command, and the focus stays in the message", () => {
  const { text, commands, writes } = field();
  writes("/");
  let focused = 0;
  text.focus = () => focused++;
  const down = Object.assign(new Event("mousedown", { cancelable: true }));
  commands.element.dispatchEvent(down);
  commands.element.children[1].dispatchEvent(new Event("click"));
  assert.deepEqual([down.defaultPrevented, text.value, focused], [true, "/reset ", 1]);
});
