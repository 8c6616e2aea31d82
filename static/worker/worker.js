// The dashboard's service worker. It takes navigations and scripts alone, keeps nothing, and is replaced by the next version at once.
import { answer, foreign, takes } from "./patience.js";

const wait = (ms) => new Promise((done) => setTimeout(done, ms));

self.addEventListener("install", (event) => {
  self.skipWaiting();
  try { // where the browser can, nothing else comes by here: a download that did would be asked for twice, as its page is
    const downloads = ["archive", "download", "files"].map((end) => ({ urlPattern: { pathname: `*/${end}` } }));
    event.waitUntil(event.addRoutes?.({ condition: { or: [{ not: { or: [{ requestMode: "navigate" }, { requestDestination: "script" }] } }, ...downloads] }, source: "network" })?.catch(() => {}));
  } catch {
    // then it comes by, and is not taken
  }
});

self.addEventListener("activate", (event) => {
  event.waitUntil(Promise.all([self.clients.claim(), self.registration.navigationPreload?.enable()]));
});

self.addEventListener("fetch", (event) => {
  if (takes(event.request)) event.respondWith(serve(event));
});

async function serve(event) {
  const response = await answer(event.request, event.preloadResponse, (request) => fetch(request), wait);
  if (event.request.mode === "navigate" && foreign(response)) event.waitUntil(self.registration.unregister());
  return response;
}

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(show(event.notification.data.url));
});

// show leads to a page of the dashboard: in the tab that has it, else in a new one.
async function show(url) {
  const to = new URL(url, self.location.origin);
  const tab = (await self.clients.matchAll({ type: "window" })).find((c) => new URL(c.url).pathname === to.pathname);
  if (!tab) return self.clients.openWindow(to.href);
  await tab.focus();
  return tab.navigate(to.href);
}
