import assert from "node:assert/strict";
import { test } from "node:test";
import { claim, isShown, Shown } from "./notify.js";

// Locks are Web Locks as far as they are used here.
class Locks {
  held = [];

  request(name, options, act) {
    if (options.ifAvailable && this.held.some((lock) => lock.name === name)) return Promise.resolve(act(null));
    const lock = { name };
    this.held.push(lock);
    return Promise.resolve(act(lock)).then(() => (this.held = this.held.filter((other) => other !== lock)));
  }

  query = async () => ({ held: this.held });
}

const turn = () => new Promise((done) => setTimeout(done));

test("a conversation is shown while a tab shows it", async () => {
  const locks = new Locks();
  const [one, two] = [new Shown(locks), new Shown(locks)];
  one.is("a");
  two.is("a");
  assert.equal(await isShown("a", locks), true);
  one.is("b");
  await turn();
  assert.equal(await isShown("a", locks), true);
  two.is("");
  await turn();
  assert.equal(await isShown("a", locks), false);
  assert.equal(await isShown("b", locks), true);
});

test("one tab tells of an event", async () => {
  const locks = new Locks();
  const all = await Promise.all(["a 1", "a 1", "a 1", "a 2"].map((event) => claim(event, locks, 0)));
  assert.deepEqual(all, [true, false, false, true]);
});
