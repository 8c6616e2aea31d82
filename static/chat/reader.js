// The page that shows a conversation to those who have a link. The link's secret is in the fragment of the address, which a browser does not
// send; this script sends it along when it asks.
import "../css/chat.css";
import "../css/reader.css";
import { h, icon } from "../js/dom.js";
import { addIcons } from "./icons.js";
import { Items } from "./items_list.js";

const pace = { working: 2000, asking: 5000, idle: 10_000, failed: 10_000 }; // ms between two looks
const patience = 30_000; // ms

addIcons();

class Reader {
  #secret = location.hash.slice(1);
  #rev = 0;
  #first = 1; // the number from which on all items are loaded

  constructor(root) {
    this.title = h("h1", {}, "Shared conversation");
    this.state = h("p", { class: "quiet", role: "status" });
    this.from = h("p", { class: "quiet small" }, "Shared from sandboxd");
    this.more = h("button", { type: "button", class: "button low", hidden: true, click: () => this.#earlier() }, "Show earlier messages");
    const items = h("div", { class: "chat-items" });
    this.items = new Items(items, document.scrollingElement, null);
    root.replaceChildren(h("header", { class: "reader-head" }, this.title, this.state, this.from), this.more, items);
    root.dataset.state = "loading";
    this.root = root;
    this.#run();
  }

  async #ask(query) {
    const answer = await fetch(`/api/v1/shared-conversation?${new URLSearchParams(query)}`, {
      headers: { Authorization: `Bearer ${this.#secret}` }, credentials: "omit", referrerPolicy: "no-referrer", signal: AbortSignal.timeout(patience),
    });
    const body = await answer.json();
    if (!answer.ok) throw Object.assign(new Error(body.detail), { status: answer.status });
    return body;
  }

  // #run looks again and again while the page is seen.
  async #run() {
    for (;;) {
      let wait = pace.idle;
      try {
        const seen = await this.#ask(this.#rev ? { since: this.#rev } : {});
        this.#take(seen);
        wait = pace[seen.state] ?? pace.idle;
      } catch (err) {
        if (err.status === 404) return this.#over(err.message);
        this.#says("The server does not respond. Trying again…");
      }
      await new Promise((done) => setTimeout(done, wait));
      if (document.hidden) await new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
    }
  }

  #take({ title, state, rev, items, first, anew }) {
    if (!this.#rev || anew) {
      this.items.load(items);
      this.#before(first);
    } else for (const item of items) if (item.n >= this.#first) this.items.show(item);
    this.#rev = rev;
    this.#dated(items);
    this.title.textContent = title || "Shared conversation";
    document.title = this.title.textContent;
    this.#says({ working: "The agent is working…", asking: "The agent waits for an answer." }[state] ?? "Read only");
    this.root.dataset.state = state;
  }

  // #dated says when what is shown was last added to.
  #dated(items) {
    const last = items.reduce((a, { at = "" }) => (at > a ? at : a), "");
    if (last) this.from.replaceChildren("Shared from sandboxd · ", h("time", { datetime: last }, new Date(last).toLocaleString([], { dateStyle: "medium", timeStyle: "short" })));
  }

  // #says tells the state, once: a screen reader reads it each time.
  #says(text) {
    if (this.state.textContent !== text) this.state.textContent = text;
  }

  #before(first) {
    this.#first = first || 1;
    this.more.hidden = this.#first <= 1;
  }

  async #earlier() {
    try {
      const { items, first } = await this.#ask({ before: this.#first });
      this.items.older(items);
      this.#before(first);
    } catch (err) {
      this.#says(err.message);
    }
  }

  #over(text) {
    this.root.dataset.state = "gone";
    document.title = "Not shared";
    this.root.replaceChildren(h("div", { class: "card empty" }, icon("link"), h("h1", {}, "Nothing here"), h("p", {}, text)));
  }
}

addEventListener("hashchange", () => location.reload()); // another link
new Reader(document.querySelector(".reader"));
