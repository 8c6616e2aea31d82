// The windows of a browser share what it keeps. This one has a name, which stays over a reload and is nobody else's; and
// where the browser has locks, it can be told which others live.

const key = "window";
const prefix = "window ";

function quietly(act) {
  try {
    return act();
  } catch {
    return null; // a browser that keeps nothing gives a new name each time
  }
}

export class Windows {
  // store is sessionStorage, locks navigator.locks (which plain HTTP has not), page the window itself.
  constructor({ store, locks, page } = {}) {
    this.locks = locks;
    this.me = quietly(() => store.getItem(key)) || Array.from(crypto.getRandomValues(new Uint8Array(9)), (b) => b.toString(36).padStart(2, "0")).join("");
    const take = () => quietly(() => store.removeItem(key)); // a copy of this window must not find the name
    take();
    page?.addEventListener?.("pagehide", () => quietly(() => store.setItem(key, this.me)));
    page?.addEventListener?.("pageshow", (event) => event.persisted && take());
    locks?.request(prefix + this.me, () => new Promise(() => {})).catch(() => {}); // for as long as the page lives
  }

  // others are the names of the other windows that live, or null where the browser does not tell.
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

// thisWindow is the page's own.
export function thisWindow() {
  one ??= new Windows({ store: quietly(() => globalThis.sessionStorage), locks: globalThis.navigator?.locks, page: globalThis });
  return one;
}
