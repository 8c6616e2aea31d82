// KeptTabs remembers which files are open, for the next page. A file whose preview has stopped the page does not stop the
// next one too: what is being rendered is noted until it has been shown.

export class KeptTabs {
  // store is of Storage's kind; owner names whose tabs they are.
  constructor(store, owner) {
    this.store = store;
    this.key = `tabs ${owner}`;
    this.risk = `rendering ${owner}`;
  }

  read() {
    try {
      return JSON.parse(this.store.getItem(this.key) ?? "{}");
    } catch {
      return {};
    }
  }

  // write keeps {tabs, shown, front}.
  write(tabs) {
    try {
      this.store.setItem(this.key, JSON.stringify(tabs));
    } catch {
      // a full store costs a convenience
    }
  }

  // rendering notes the path whose preview is being made.
  rendering(path) {
    try {
      this.store.setItem(this.risk, path);
    } catch {
      // then it may stop the next page once more
    }
  }

  // rendered is called when the page has survived it, or is left in an orderly way.
  rendered(path) {
    try {
      if (path === undefined || this.store.getItem(this.risk) === path) this.store.removeItem(this.risk);
    } catch {
      // as above
    }
  }

  // fatal gives the path whose preview the last page did not survive, or "". It tells only once.
  fatal() {
    try {
      const path = this.store.getItem(this.risk) ?? "";
      this.store.removeItem(this.risk);
      return path;
    } catch {
      return "";
    }
  }
}
