// KeptTabs stores which files are open, for the next page load. It also notes which file is being rendered, so that a
// preview that crashed the page is not rendered again by itself.
import { readJSON, writeJSON } from "../js/storage.js";

export class KeptTabs {
  // store is a Storage; owner names whose tabs they are.
  constructor(store, owner) {
    this.store = store;
    this.key = `tabs ${owner}`;
    this.renderingKey = `rendering ${owner}`;
  }

  read() {
    return readJSON(this.store, this.key);
  }

  // write stores {tabs, shown, front}.
  write(tabs) {
    writeJSON(this.store, this.key, tabs);
  }

  rendering(path) {
    writeJSON(this.store, this.renderingKey, path);
  }

  // rendered ends that; without a path, when the page unloads normally.
  rendered(path) {
    if (path === undefined || readJSON(this.store, this.renderingKey, "") === path) writeJSON(this.store, this.renderingKey, undefined);
  }

  // crashed returns the path whose preview crashed the last page, or "". It does so only once.
  crashed() {
    const path = readJSON(this.store, this.renderingKey, "");
    this.rendered();
    return path;
  }
}
