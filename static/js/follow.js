// Scrolls growing logs to their end, unless the user has scrolled up.
const near = 40;

const growing = new MutationObserver((changes) => {
  for (const log of new Set(changes.map((c) => c.target.closest?.("[data-follow]") ?? c.target.parentElement?.closest("[data-follow]")))) {
    if (log && log.dataset.held !== "true") log.scrollTop = log.scrollHeight;
  }
});

document.addEventListener(
  "scroll",
  (event) => {
    const log = event.target;
    if (log.dataset?.follow === undefined) return;
    log.dataset.held = String(log.scrollHeight - log.scrollTop - log.clientHeight > near);
  },
  true,
);

document.addEventListener(
  "toggle",
  (event) => {
    for (const log of event.target.querySelectorAll?.("[data-follow]") ?? []) log.scrollTop = log.scrollHeight;
  },
  true,
);

function watch(root) {
  for (const log of root.querySelectorAll("[data-follow]")) {
    growing.observe(log, { childList: true, characterData: true, subtree: true });
    log.scrollTop = log.scrollHeight;
  }
}

watch(document);
document.addEventListener("htmx:load", () => watch(document));
