// What the server keeps of how a person works in the workspace: a small object, written as a whole a moment after it has
// changed. The page brings it (data-preferences of <main>), so that nothing jumps when it loads. Windows tell each other
// what they change, so that none writes back what another one had before.
const pause = 400; // ms after the last change
const again = 3000; // ms after which a write that went wrong is tried once more

export class Preferences {
  #timer = 0;

  // text is what the page brings; channel a BroadcastChannel, or null; put(body) asks the server and gives its answer.
  constructor(text, { channel = null, put, wait = (act, ms) => setTimeout(act, ms) }) {
    this.kept = JSON.parse(text || "{}");
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

  // flush writes at once what waits for it.
  flush() {
    if (this.#timer) this.send();
  }

  // send writes all of it. What goes wrong is tried once more; after that the next change brings all of it.
  async send(last = false) {
    clearTimeout(this.#timer);
    this.#timer = 0;
    let wrong;
    try {
      const answer = await this.put(JSON.stringify(this.kept));
      if (answer.ok) return;
      wrong = `sandboxd answered with ${answer.status}`;
    } catch (err) {
      wrong = err.message;
    }
    console.warn(`How the workspace is arranged was not kept: ${wrong}.`);
    if (!last && !this.#timer) this.#timer = this.wait(() => this.send(true), again);
  }
}

const place = globalThis.document?.querySelector?.("[data-preferences]");
const channel = place && globalThis.BroadcastChannel ? new BroadcastChannel(`preferences ${document.body.dataset.person ?? ""}`) : null;
const own = new Preferences(place?.dataset.preferences, {
  channel,
  put: (body) => fetch("/preferences/workspace", { method: "PUT", headers: { "Content-Type": "application/json" }, body, keepalive: true }),
});

// preference gives what is kept under a name, or otherwise.
export function preference(name, otherwise) {
  return own.get(name, otherwise);
}

// setPreference keeps a value under a name. Names are those of web/layout.go.
export function setPreference(name, value) {
  own.set(name, value);
}

// size and setPaneSize are for the inside of a pane, such as the width of a tree: whole pixels under a name of its own.
export function paneSize(name, otherwise) {
  return preference("sizes", {})[name] ?? otherwise;
}

export function setPaneSize(name, pixels) {
  set("sizes", { ...get("sizes", {}), [name]: Math.round(pixels) });
}

globalThis.addEventListener?.("pagehide", () => own.flush());
