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

  // load puts a view in place of everything.
  load({ conversation, items, queue }) {
    this.conversation = conversation;
    this.queue = queue;
    this.rev = conversation.rev;
    this.items.clear();
    this.#sizes.clear();
    for (const item of items) this.#put(item);
  }

  // older adds items from before.
  older(items) {
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
    const first = this.first;
    for (const item of change.items ?? []) {
      if (item.n < first && first !== Infinity) continue; // not loaded
      this.#put(item);
      touched.add(item.n);
    }
    for (const { n, field, at, text } of change.appends ?? []) {
      const item = this.items.get(n);
      const key = `${n} ${field}`;
      if (!item && n < this.first) continue; // the same
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

  // first is the lowest number of an item that is loaded.
  get first() {
    return this.items.size ? Math.min(...this.items.keys()) : Infinity;
  }

  get list() {
    return [...this.items.values()].sort((a, b) => a.n - b.n);
  }

  // question returns the open question, or undefined.
  get question() {
    return this.list.findLast((item) => item.kind === "question" && item.open);
  }
}

// blocksOf splits Markdown that is still being written: what is complete, and the rest. A block ends at a blank line outside of a fence.
export function blocksOf(text) {
  let fence = "";
  let end = 0;
  let at = 0;
  for (const line of text.split(/(?<=\n)/)) {
    const mark = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (mark && !fence) fence = mark;
    else if (mark && mark[0] === fence[0] && mark.length >= fence.length && !line.trim().slice(mark.length)) fence = "";
    at += line.length;
    if (!fence && line.trim() === "" && line.endsWith("\n")) end = at;
  }
  return { whole: text.slice(0, end), rest: text.slice(end) };
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
  if (used.context_window && used.context_tokens) parts.push(`${Math.round((100 * used.context_tokens) / used.context_window)}% of context`);
  const tokens = used.input_tokens + used.cached_tokens + used.output_tokens;
  if (tokens) parts.push(`${shortNumber(tokens)} tokens`);
  if (used.cost_usd) parts.push(`$${used.cost_usd.toFixed(used.cost_usd < 1 ? 3 : 2)}`);
  return parts.join(" · ");
}

// hidden finds characters in a text that a person does not see, or that turn what they see around.
export function hiddenIn(text) {
  return /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/u.test(text);
}

// shown writes such characters as codes.
export function shown(text) {
  return text.replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu, (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}
