// A template as it is being edited: its files as they are stored, and as they are here. Nothing of the page is in it.

const first = ["template.yaml", "Dockerfile", "README.md"];

// sorted returns paths with the files that every template has first.
export function sorted(paths) {
  const rank = (path) => (first.includes(path) ? first.indexOf(path) : first.length);
  return [...paths].sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : a > b ? 1 : 0));
}

// fixed says whether a template must have a file.
export const fixed = (path) => path === first[0];

// wrongPath returns why a path cannot be that of a new file, or "".
export function wrongPath(path, taken) {
  if (!/^[^/\\\s][^\\]*$/.test(path) || path.endsWith("/") || path.split("/").some((part) => ["", ".", ".."].includes(part))) return "Enter a path such as files/setup.sh.";
  if (taken.includes(path)) return "There is a file of this name already.";
  if (taken.some((other) => other.startsWith(`${path}/`) || path.startsWith(`${other}/`))) return "A file cannot be a folder too.";
  return "";
}

export class Draft {
  #saved = new Map(); // path → text, or null for what is not text
  #texts = new Map();

  // take takes the files over as they are stored: {etag, files: [{path, text}]}.
  take({ etag, files }) {
    this.etag = etag;
    this.#saved = new Map(files.map(({ path, text }) => [path, text]));
    this.#texts = new Map(this.#saved);
  }

  // stored notes that these texts are stored now, as etag. What was typed since stays unsaved.
  stored(etag, texts) {
    this.etag = etag;
    this.#saved = new Map([...texts].map(([path, text]) => [path, text ?? this.#saved.get(path) ?? null]));
  }

  get paths() {
    return sorted(this.#texts.keys());
  }

  text(path) {
    return this.#texts.get(path) ?? null;
  }

  set(path, text) {
    this.#texts.set(path, text);
  }

  delete(path) {
    this.#texts.delete(path);
  }

  isDirty(path) {
    return !this.#saved.has(path) || this.#saved.get(path) !== this.#texts.get(path);
  }

  get dirty() {
    return this.#saved.size !== this.#texts.size || [...this.#texts.keys()].some((path) => this.isDirty(path));
  }

  // files returns what a save sends: null for a file that stays as it is stored.
  get files() {
    return new Map([...this.#texts].map(([path, text]) => [path, this.isDirty(path) ? text : null]));
  }
}
