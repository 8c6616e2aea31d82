// The items of a conversation in the page: in their order, drawn as time allows, and never jumping while one reads.
import { h } from "../js/dom.js";
import { viewOf } from "./items.js";
import { later } from "./slices.js";

const atOnce = 8; // items that are drawn before anything is shown
const together = 16; // items of a group, which the browser lays out when it comes near to what is in view
const patience = 25; // ms that more may take

// Items keeps views in an element that list scrolls. acts has what their buttons do; drawn() is called when none waits any more.
export class Items {
  #views = new Map(); // n → view
  #order = []; // of views, as they are in the page
  #runs = new Map(); // n of an item → numbers of the runs of its code
  #asked = new Set(); // n of calls that the person is asked about
  #busy = false; // the conversation works or asks
  #left = []; // items that wait to be drawn, the last one first
  #drawing = false;
  #anchor = null; // {element, offset}: the first item in view, and where it is

  constructor(element, list, acts, drawn = () => {}) {
    Object.assign(this, { element, list, acts, drawn });
  }

  get size() {
    return this.#views.size;
  }

  // waiting is how many items are not drawn yet.
  get waiting() {
    return this.#left.length;
  }

  // load puts items in place of all: the last ones at once, the others before them soon.
  load(items) {
    this.#views.clear();
    this.#runs.clear();
    this.#asked.clear();
    this.#order = [];
    this.#left = [];
    this.#anchor = null;
    this.element.replaceChildren();
    const begun = performance.now();
    let first = items.length;
    while (first > 0 && (items.length - first < atOnce || performance.now() - begun < patience)) this.show(items[--first]);
    this.older(items.slice(0, first));
  }

  // older draws items that are before all others, the last one first, as time allows.
  older(items) {
    this.#left = [...items, ...this.#left];
    if (this.#drawing || !this.#left.length) return;
    this.#drawing = true;
    later(() => this.#next());
  }

  #next() {
    const item = this.#left.pop();
    this.#drawing = this.#left.length > 0;
    if (item && !this.#views.has(item.n)) this.show(item);
    if (!this.#drawing) this.drawn();
    return this.#drawing;
  }

  // show draws an item, in its place: a run below the item whose code it is, when that is there.
  show(item) {
    if (item.kind === "question" && item.data?.call) this.#asks(item.data.call, Boolean(item.open));
    const view = this.#views.get(item.n);
    if (view) return view.update(item);
    const fresh = this.#viewOf(item);
    fresh.n = item.n;
    this.#views.set(item.n, fresh);
    fresh.asks?.(this.#asked.has(item.n));
    fresh.busy?.(this.#busy);
    const of = item.kind === "run" ? (item.data?.item ?? 0) : 0;
    if (of) this.#runs.set(of, [...(this.#runs.get(of) ?? []), item.n]);
    this.#place(fresh, of);
    for (const n of this.#runs.get(item.n) ?? []) this.#move(this.#views.get(n), item.n);
  }

  // #asks has a call say whether the person is asked about it.
  #asks(n, open) {
    if (open) this.#asked.add(n);
    else this.#asked.delete(n);
    this.#views.get(n)?.asks?.(open);
  }

  // busy tells the views whether the conversation works or asks.
  busy(on) {
    if (on === this.#busy) return;
    this.#busy = on;
    for (const view of this.#views.values()) view.busy?.(on);
  }

  // #viewOf makes a view. An item that cannot be drawn does not take the others with it.
  #viewOf(item) {
    try {
      return viewOf(item, this.acts);
    } catch {
      return { element: h("p", { class: "chat-item quiet" }, "This cannot be shown."), update() {} };
    }
  }

  #place(view, of) {
    view.key = this.#views.has(of) ? [of, view.n] : [view.n, 0];
    const at = placeIn(this.#order, (v) => before(v.key, view.key));
    const [last, next] = [this.#order[at - 1]?.element.parentElement, this.#order[at]?.element.parentElement];
    if (next && (next === last || next.children.length < together)) next.insertBefore(view.element, this.#order[at].element);
    else if (last && last.children.length < together) last.append(view.element);
    else this.element.insertBefore(h("div", { class: "chat-group" }, view.element), next ?? null);
    this.#order.splice(at, 0, view);
  }

  #move(view, of) {
    const group = view.element.parentElement;
    this.#order.splice(this.#order.indexOf(view), 1);
    view.element.remove();
    if (!group.children.length) group.remove();
    this.#place(view, of);
  }

  #offset(element) {
    return element.getBoundingClientRect().top - this.list.getBoundingClientRect().top + this.list.scrollTop;
  }

  // look notes what the person looks at, after they have scrolled.
  look() {
    const top = this.list.getBoundingClientRect().top;
    const above = (e) => e.getBoundingClientRect().bottom <= top;
    const first = (elements) => elements[placeIn(elements, above)];
    const group = first(this.element.children); // what is in the others is not measured: it would have to be laid out
    const element = group && (first(group.children) ?? group.nextElementSibling ?? group);
    this.#anchor = element ? { element, offset: this.#offset(element) } : null;
  }

  // stay keeps that where it is, after what is above it has become higher or lower.
  stay() {
    if (!this.#anchor?.element.isConnected) return this.look();
    const offset = this.#offset(this.#anchor.element);
    const moved = offset - this.#anchor.offset;
    this.#anchor.offset = offset;
    if (Math.abs(moved) >= 1) this.list.scrollTop += moved;
  }
}

// placeIn gives the place of the first of a list of which is is not true.
function placeIn(list, is) {
  let [low, high] = [0, list.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (is(list[middle])) low = middle + 1;
    else high = middle;
  }
  return low;
}

const before = (a, b) => a[0] < b[0] || (a[0] === b[0] && a[1] < b[1]);
