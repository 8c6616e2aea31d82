// What is known of one conversation, from its changes (web/api_chat_shape.go). It draws nothing.

const bytes = new TextEncoder();
const lengthOf = (text) => bytes.encode(text).length;

// Model collects the items of a conversation. take applies a change and returns what it touched.
export class Model {
  conversation = null;
  queue = [];
  items = new Map(); // n → item
  rev = 0;
  #sizes = new Map(); // n + field → bytes
  first = 1; // the number from which on all items are loaded

  // load puts a view in place of everything.
  load({ conversation, items, first, queue }) {
    this.conversation = conversation;
    this.queue = queue;
    this.rev = conversation.rev;
    this.items.clear();
    this.first = first || 1;
    this.#sizes.clear();
    for (const item of items) this.#put(item);
  }

  // older adds a view of what is before.
  older({ items, first }) {
    this.first = first || 1;
    for (const item of items) if (!this.items.has(item.n)) this.#put(item);
  }

  #put(item) {
    this.items.set(item.n, { text: "", output: "", data: {}, ...item });
    this.#sizes.set(`${item.n} text`, lengthOf(item.text ?? ""));
    this.#sizes.set(`${item.n} output`, lengthOf(item.output ?? ""));
  }

  // take returns {items: [n], conversation, queue, gone}, or null when something is missing: then everything must be loaded anew.
  take(change) {
    if (change.gone) return { items: [], gone: true };
    const touched = new Set();
    for (const item of change.items ?? []) {
      if (item.n < this.first) continue; // not loaded
      this.#put(item);
      touched.add(item.n);
    }
    for (const { n, field, at, text } of change.appends ?? []) {
      const item = this.items.get(n);
      const key = `${n} ${field}`;
      if (!item && n < this.first) continue; // the same
      if (item?.rev >= change.rev) continue; // it was loaded later than that
      if (!item || this.#sizes.get(key) !== at) return null;
      item[field] += text;
      item.rev = change.rev;
      this.#sizes.set(key, at + lengthOf(text));
      touched.add(n);
    }
    if (change.conversation) this.conversation = change.conversation;
    if (change.queue) this.queue = change.queue;
    this.rev = change.rev;
    return { items: [...touched], conversation: Boolean(change.conversation), queue: Boolean(change.queue), gone: false };
  }

  get list() {
    return [...this.items.values()].sort((a, b) => a.n - b.n);
  }

  // question returns the open question, or undefined.
  get question() {
    return this.list.findLast((item) => item.kind === "question" && item.open);
  }
}

// shortNumber writes 12345 as 12.3k.
export function shortNumber(n) {
  if (n < 1000) return String(n);
  if (n < 1e6) return `${(n / 1e3).toFixed(n < 1e4 ? 1 : 0)}k`;
  return `${(n / 1e6).toFixed(1)}M`;
}

// usageText says what a conversation has taken.
export function usageText(used) {
  const parts = [];
  if (used.context_tokens) parts.push(used.context_window ? `${Math.round((100 * used.context_tokens) / used.context_window)}% of context` : `${shortNumber(used.context_tokens)} in context`);
  const tokens = used.input_tokens + used.cached_tokens + used.output_tokens;
  if (tokens) parts.push(`${shortNumber(tokens)} tokens`);
  if (used.cost_usd) parts.push(`$${used.cost_usd.toFixed(used.cost_usd < 1 ? 3 : 2)}`);
  else if (used.unpriced && tokens) parts.push("price not known");
  return parts.join(" · ");
}

// usageTitle says more of it.
export function usageTitle(used) {
  const context = used.context_window ? `${shortNumber(used.context_tokens)} of ${shortNumber(used.context_window)} tokens in context` : "";
  const cost = !used.unpriced ? "" : used.cost_usd ? "the price of some of it is not known, and it is not in the cost" : "";
  return [context, cost].filter(Boolean).join(" · ");
}

// hidden are characters in a text that a person does not see, or that turn what they see around. A picture of text, such as ⚠️, may say that
// it is one.
const hidden = /[\ufe0e\ufe0f](?<!\p{Extended_Pictographic}.)|(?![\ufe0e\ufe0f])\p{Default_Ignorable_Code_Point}|(?![\t\n\r])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\u2800]|\r(?!\n)/gu;

// hiddenIn says whether there are any.
export const hiddenIn = (text) => text.search(hidden) >= 0;

// shown writes such characters as codes.
export const shown = (text) => text.replace(hidden, (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);

// line writes a text as one line.
export const line = (text) => shown(text).replace(/[\r\n]+/g, "⟨line⟩");

// pictureTypes are the pictures that are shown, and that a model can be sent.
export const pictureTypes = /^image\/(png|jpeg|gif|webp)$/;
