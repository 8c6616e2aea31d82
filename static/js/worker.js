// Registers the service worker, which asks again for pages and scripts that a change of networks took away (static/worker). Browsers have
// service workers over HTTPS and on localhost.
globalThis.addEventListener?.("load", () => {
  globalThis.navigator?.serviceWorker?.register("/service-worker.js", { updateViaCache: "none" }).catch(() => {}); // pages work without
});
