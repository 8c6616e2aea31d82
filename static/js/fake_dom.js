// A minimal DOM for tests of modules that create elements.

export class FakeElement extends EventTarget {
  constructor(tag) {
    super();
    Object.assign(this, { tag, attributes: {}, children: [], style: {}, dataset: {}, parentElement: null, hidden: false, clientWidth: 800, className: "" });
    this.classList = { add() {}, remove() {}, toggle() {}, contains: () => false };
  }
  setAttribute(name, value) {
    this.attributes[name] = String(value);
  }
  getAttribute(name) {
    return this.attributes[name] ?? null;
  }
  removeAttribute(name) {
    delete this.attributes[name];
  }
  append(...children) {
    for (const child of children) this.insertBefore(child, null);
  }
  before() {}
  insertBefore(child, before) {
    child.parentElement?.children.splice(child.parentElement.children.indexOf(child), 1);
    if (typeof child !== "string") child.parentElement = this;
    this.children.splice(before ? this.children.indexOf(before) : this.children.length, 0, child);
  }
  replaceChildren(...children) {
    this.children = [];
    this.append(...children);
  }
  replaceWith(other) {
    this.replaced = other;
  }
  cloneNode() {
    return new FakeElement(this.tag);
  }
  contains(other) {
    return other === this || this.children.some((c) => typeof c !== "string" && c.contains?.(other));
  }
  querySelector() {
    return null;
  }
  get firstElementChild() {
    return this.children[0] ?? null;
  }
  get textContent() {
    return this.children.map((c) => (typeof c === "string" ? c : c.textContent)).join("");
  }
  set textContent(text) {
    this.children = [text];
  }
  remove() {
    this.parentElement?.children.splice(this.parentElement.children.indexOf(this), 1);
    this.parentElement = null;
  }
  focus() {}
  scrollIntoView() {}
}

export function fakePage() {
  const make = (tag) => new FakeElement(tag);
  globalThis.document = Object.assign(make("document"), {
    createElement: make, createElementNS: (_, tag) => make(tag), createDocumentFragment: () => make("fragment"), getElementById: () => null, body: make("body"), documentElement: make("html"),
  });
}

// FakeStorage is a Storage.
export class FakeStorage extends Map {
  getItem(key) {
    return this.get(key) ?? null;
  }
  setItem(key, value) {
    this.set(key, value);
  }
  removeItem(key) {
    this.delete(key);
  }
}

// FakeDatabase is the part of an IndexedDB that Drafts needs.
export class FakeDatabase {
  rows = new Map();
  open() {
    const { rows } = this;
    const store = {
      put: (row) => done(rows.set(row.key, row)), get: (key) => done(rows.get(key)), delete: (key) => done(rows.delete(key)),
      getAll: () => this.getAll(), getAllKeys: () => done([...rows.keys()]),
    };
    return done({ transaction: () => ({ objectStore: () => store }) });
  }
  getAll() {
    return done([...this.rows.values()]);
  }
}

function done(result) {
  const request = { result };
  queueMicrotask(() => request.onsuccess?.());
  return request;
}

// turns lets pending promises and callbacks run.
export async function turns(n = 20) {
  for (let i = 0; i < n; i++) await new Promise(setImmediate);
}
