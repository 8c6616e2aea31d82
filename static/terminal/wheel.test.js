import assert from "node:assert/strict";
import { test } from "node:test";
import { linesOf, Wheel } from "./wheel.js";

// A terminal that answers as `program` says: {full} or {full, text}.
function newWheel(program) {
  const did = [];
  let at = 0;
  const wheel = new Wheel({
    look: async (part) => (did.push(`look ${part}`), { full: program.full, text: part === "state" || program.full ? "" : program.text }),
    open: (text, lines) => did.push(`open ${text} ${lines}`),
    arrows: (lines) => did.push(`arrows ${lines}`),
    now: () => at,
  });
  return { wheel, did, pass: (ms) => (at += ms) };
}

test("turning up at a prompt opens the scrollback", async () => {
  const { wheel, did } = newWheel({ full: false, text: "past" });
  await wheel.turn(-3.2);
  assert.deepEqual(did, ["look unless-full", "open past 3"]);
});

test("what is turned meanwhile counts too", async () => {
  const { wheel, did } = newWheel({ full: false, text: "past" });
  await Promise.all([wheel.turn(-3), wheel.turn(-4)]);
  assert.deepEqual(did, ["look unless-full", "open past 7"]);
});

test("turning down at a prompt does nothing, and asks once a gesture", async () => {
  const { wheel, did, pass } = newWheel({ full: false, text: "past" });
  for (let i = 0; i < 5; i++) await wheel.turn(4);
  assert.deepEqual(did, ["look state"]);
  pass(1500);
  await wheel.turn(4);
  assert.deepEqual(did, ["look state", "look state"]);
});

test("in a program with the whole screen the wheel is arrow keys", async () => {
  const { wheel, did, pass } = newWheel({ full: true });
  await wheel.turn(-2.5);
  await wheel.turn(-1);
  await wheel.turn(3);
  assert.deepEqual(did, ["look unless-full", "arrows -2", "arrows -1", "arrows 2"]);
  pass(1500);
  await wheel.turn(1);
  assert.deepEqual(did.slice(4), ["look state", "arrows 1"]);
});

test("after such a program the next turn up opens the scrollback again", async () => {
  const program = { full: true, text: "past" };
  const { wheel, did, pass } = newWheel(program);
  await wheel.turn(-1);
  program.full = false;
  pass(1500);
  await wheel.turn(-1);
  assert.deepEqual(did.slice(2), ["look state", "look unless-full", "open past 1"]);
});

test("a program that was started meanwhile gets the next turn", async () => {
  const program = { full: false, text: "past" };
  const { wheel, did } = newWheel(program);
  await wheel.turn(1);
  program.full = true;
  wheel.forget();
  await wheel.turn(2);
  assert.deepEqual(did, ["look state", "look state", "arrows 2"]);
});

test("a failure is no answer", async () => {
  const wheel = new Wheel({ look: () => Promise.reject(new Error("offline")), open: assert.fail, arrows: assert.fail });
  await wheel.turn(-3);
});

test("wheels turn by pixels, lines or pages", () => {
  assert.equal(linesOf({ deltaY: 100, deltaMode: 0, wheelDeltaY: -120 }, 20, 24), 2.5);
  assert.equal(linesOf({ deltaY: 100, deltaMode: 0 }, 20, 24), 5);
  assert.equal(linesOf({ deltaY: -3, deltaMode: 1 }, 20, 24), -3);
  assert.equal(linesOf({ deltaY: 1, deltaMode: 2 }, 20, 24), 24);
});
