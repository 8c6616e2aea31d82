// A minimal DOM for tests of modules that create elements.

export class FakeElement extends EventTarget {
  constructor(tag) {
    super();
    Object.assign(this, { tag, attributes: {}, children: [], style: {}, dataset: {}, hidden: false, clientWidth: 800, className: "" });
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
    this.children.push(...children);
  }
  before() {}
  replaceChildren(...children) {
    this.children = children;
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
  remove() {}
  focus() {}
  scrollIntoView() {}
}

export function fakePage() {
  const make = (tag) => new FakeElement(tag);
  globalThis.document = Object.assign(make("document"), {
    createElement: make, createElementNS: (_, tag) => make(tag), createDocumentFragment: () => make("fragment"), getElementById: () => null, body: make("body"), documentElement: make("html"),
  });
}
