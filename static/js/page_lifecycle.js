// Browsers keep pages that were left, with the requests that they wait for, and have few connections for all of them. So what
// a page waits for ends when it is left, as if the connection were lost, and is tried again when it is back.
let here = new AbortController();

globalThis.addEventListener?.("pagehide", () => here.abort(new TypeError("The page was left.")));
globalThis.addEventListener?.("pageshow", (event) => {
  if (event.persisted) here = new AbortController();
});

// pageSignal gives a signal that ends when the page is left.
export function pageSignal() {
  return here.signal;
}

// onResume calls back when what was lost may work again: the browser is online again, or the page is back.
export function onResume(back, { signal } = {}) {
  globalThis.addEventListener?.("online", () => back(), { signal });
  globalThis.addEventListener?.("pageshow", (event) => event.persisted && back(), { signal });
}
