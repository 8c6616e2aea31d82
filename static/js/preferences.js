// The user's workspace preferences: a small object, saved as a whole shortly after each change. The page brings it
// (data-preferences), so that nothing moves while it loads. Windows broadcast their changes, so that none overwrites
// another's.
import { parseJSON } from "./storage.js";

const pause = 400; // ms after the last change
const again = 3000; // ms before a failed save is retried once

export class Preferences {
  #timer = 0;

  // text is the JSON in the page. channel is a BroadcastChannel, or null. put(body) saves and resolves to the response.
  constructor(text, { channel = null, put, wait = (act, ms) => setTimeout(act, ms) }) {
    this.kept = parseJSON(text);
    Object.assign(this, { channel, put, wait });
    channel?.addEventListener("message", ({ data }) => (this.kept[data.name] = data.value));
  }

  get(name, otherwise) {
    return this.kept[name] ?? otherwise;
  }

  set(name, value) {
    if (JSON.stringify(this.kept[name]) === JSON.stringify(value)) return;
    this.kept[name] = value;
    this.channel?.postMessage({ name, value });
    this.#schedule(pause);
  }

  #schedule(ms) {
    clearTimeout(this.#timer);
    this.#timer = this.wait(() => this.send(), ms);
  }

  // flush saves pending changes at once.
  flush() {
    if (this.#timer) this.send();
  }

  // send saves everything. A failure is retried once; after that the next change saves everything again.
  async send(last = false) {
    clearTimeout(this.#timer);
    this.#timer = 0;
    let wrong;
    try {
      const answer = await this.put(JSON.stringify(this.kept));
      if (answer.ok) return;
      wrong = `The server responded with status ${answer.status}`;
    } catch (err) {
      wrong = err.message;
    }
    console.warn(`The workspace layout was not saved: ${wrong}.`);
    if (!last && !this.#timer) this.#timer = this.wait(() => this.send(true), again);
  }
}

const place = globalThis.document?.querySelector?.("[data-preferences]");
const channel = place && globalThis.BroadcastChannel ? new BroadcastChannel(`preferences ${document.body.dataset.person ?? ""}`) : null;
const own = new Preferences(place?.dataset.preferences, {
  channel,
  put: (body) => fetch("/preferences/workspace", { method: "PUT", headers: { "Content-Type": "application/json" }, body, keepalive: true }),
});

export function preference(name, otherwise) {
  return own.get(name, otherwise);
}

// setPreference stores a value. web/layout.go has the names.
export function setPreference(name, value) {
  own.set(name, value);
}

// paneSize and setPaneSize are for sizes inside a pane, such as the width of the tree, in whole pixels.
export function paneSize(name, otherwise) {
  return preference("sizes", {})[name] ?? otherwise;
}

export function setPaneSize(name, pixels) {
  setPreference("sizes", { ...preference("sizes", {}), [name]: Math.round(pixels) });
}

globalThis.addEventListener?.("pagehide", () => own.flush());
