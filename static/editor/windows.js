// Identifies this window among others of the same browser, which share storage. The name survives reloads. Where the browser
// has Web Locks, the names of the other open windows are known.

const key = "window";
const prefix = "window ";

function quietly(act) {
  try {
    return act();
  } catch {
    return null; // without storage each load gets a new name
  }
}

export class Windows {
  // store is sessionStorage, locks navigator.locks (missing without HTTPS), page the window.
  constructor({ store, locks, page } = {}) {
    this.locks = locks;
    this.me = quietly(() => store.getItem(key)) || Array.from(crypto.getRandomValues(new Uint8Array(9)), (b) => b.toString(36).padStart(2, "0")).join("");
    const take = () => quietly(() => store.removeItem(key)); // a duplicated window must not get the same name
    take();
    page?.addEventListener?.("pagehide", () => quietly(() => store.setItem(key, this.me)));
    page?.addEventListener?.("pageshow", (event) => event.persisted && take());
    locks?.request(prefix + this.me, () => new Promise(() => {})).catch(() => {}); // held while the page is open
  }

  // others returns the names of the other open windows, or null when that is unknown.
  async others() {
    try {
      const { held = [], pending = [] } = await this.locks.query();
      const names = [...held, ...pending].map((l) => l.name).filter((n) => n.startsWith(prefix));
      return new Set(names.map((n) => n.slice(prefix.length)).filter((n) => n !== this.me));
    } catch {
      return null;
    }
  }
}

let one = null;

// thisWindow returns the singleton.
export function thisWindow() {
  one ??= new Windows({ store: quietly(() => globalThis.sessionStorage), locks: globalThis.navigator?.locks, page: globalThis });
  return one;
}
