// Tells a person of what an agent does in a conversation that no tab shows: as a toast in the page, and as one notification of the
// browser. Web Locks say which tab shows what, and which one notifies.
import { toast } from "../js/toast.js";

const kept = 10_000; // ms that a tab keeps the right to notify of one event: more than tabs are apart in hearing of it

const lockOf = (conversation) => `chat shown ${conversation}`;

// Shown tells the other tabs which conversation this one shows.
export class Shown {
  #id = "";
  #release = () => {};

  constructor(locks = globalThis.navigator?.locks) {
    this.locks = locks;
  }

  // is says which conversation is shown now; "" for none.
  is(id) {
    if (id === this.#id) return;
    this.#release();
    this.#id = id;
    this.#release = () => {};
    if (!id) return;
    const held = new Promise((done) => (this.#release = done));
    this.locks?.request(lockOf(id), { mode: "shared" }, () => held);
  }
}

// isShown says whether any tab shows a conversation.
export async function isShown(id, locks = globalThis.navigator?.locks) {
  const { held = [] } = (await locks?.query()) ?? {};
  return held.some((lock) => lock.name === lockOf(id));
}

// claim resolves to true in one of the tabs that ask for the same event.
export function claim(event, locks = globalThis.navigator?.locks, wait = kept) {
  if (!locks) return Promise.resolve(true);
  return new Promise((answer) => {
    locks.request(`chat news ${event}`, { ifAvailable: true }, (lock) => {
      answer(Boolean(lock));
      return lock && new Promise((done) => setTimeout(done, wait));
    });
  });
}

// notify tells of one event: {title, text, url, conversation, change, bad}.
export async function notify({ title, text, url, conversation, change, bad }) {
  if (await isShown(conversation)) return;
  const lines = text ? `${title}: ${text}` : title;
  if (!document.hidden) toast(lines, { bad: bad !== undefined, action: { text: "Show", act: () => location.assign(url) } });
  if (globalThis.Notification?.permission !== "granted" || !(await claim(`${conversation} ${change}`))) return;
  const options = { body: text, tag: conversation, renotify: true, data: { url } };
  const worker = await navigator.serviceWorker?.getRegistration();
  if (worker?.active) return worker.showNotification(title, options); // phones know no other way
  try {
    const note = new Notification(title, options);
    note.addEventListener("click", () => {
      globalThis.focus();
      location.assign(url);
    });
  } catch {
    // a phone without the worker
  }
}
