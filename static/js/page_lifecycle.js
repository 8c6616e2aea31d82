// Browsers keep pages in the back/forward cache together with their pending requests, which count against the connection
// limit. So requests are aborted when the page is left, as if the connection were lost, and retried when it is back.
let here = new AbortController();

globalThis.addEventListener?.("pagehide", () => here.abort(new TypeError("The page was left.")));
globalThis.addEventListener?.("pageshow", (event) => {
  if (event.persisted) here = new AbortController();
});

// pageSignal returns a signal that aborts when the page is left.
export function pageSignal() {
  return here.signal;
}

// onResume calls back when failed requests may succeed again: the browser is online again, or the page is back.
export function onResume(back, { signal } = {}) {
  globalThis.addEventListener?.("online", () => back(), { signal });
  globalThis.addEventListener?.("pageshow", (event) => event.persisted && back(), { signal });
}
