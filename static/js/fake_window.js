// A window for tests of modules that open connections. Import it before the modules under test.
const page = new EventTarget();
export const sockets = []; // the newest last

// FakeSocket is a WebSocket whose other end is the test.
export class FakeSocket {
  readyState = 0;
  sent = [];
  constructor(url) {
    this.url = new URL(url);
    sockets.push(this);
  }
  send(message) {
    this.sent.push(message);
  }
  close(code) {
    this.closed = code;
  }
  opens() {
    this.readyState = 1;
    this.onopen();
  }
  says(data) {
    this.onmessage({ data });
  }
  ends(code = 1006, reason = "") {
    this.readyState = 3;
    this.onclose({ code, reason });
  }
}

export const last = () => sockets.at(-1);
export const settled = () => new Promise((resolve) => setImmediate(resolve));

// fires dispatches an event on the window.
export function fires(kind, more = {}) {
  page.dispatchEvent(Object.assign(new Event(kind), more));
}

Object.assign(globalThis, {
  addEventListener: page.addEventListener.bind(page), location: { href: "http://box/" }, WebSocket: FakeSocket,
  document: Object.assign(new EventTarget(), { hidden: false, body: { dataset: {} } }),
});
