// Reloads by itself: a waiting page when the sandbox is ready, any other when its address shows something else (it sends probes,
// which wake nothing). Reloading keeps the address, its fragment and the history.
const every = 2000;
const page = document.documentElement.dataset;
const text = document.getElementById("text");
const status = document.getElementById("wait");

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// seen resolves once this tab is visible.
const seen = () => new Promise((done) => {
  const look = () => {
    if (document.hidden) return;
    document.removeEventListener("visibilitychange", look);
    done();
  };
  document.addEventListener("visibilitychange", look);
  look();
});

// wait reports whether to reload.
async function wait() {
  const answer = await fetch(page.wait, { cache: "no-store", redirect: "manual", headers: { Accept: "application/json" } });
  if (answer.status >= 500) throw new Error("not now");
  if (!answer.ok) return true; // the address itself says why
  const outlook = await answer.json();
  if (outlook.text && outlook.text !== text.textContent) text.textContent = outlook.text;
  if (outlook.stay) {
    status.hidden = true;
    return new Promise(() => {});
  }
  if (outlook.again) {
    await pause(1000 * outlook.again);
    await seen();
  }
  return outlook.go === true;
}

// changed reports whether this address shows something else now. A sandbox at rest is no reason to wake it.
async function changed() {
  await pause(every);
  await seen();
  const headers = { Accept: "text/html", "X-Sandboxd-Observe": "1" };
  const answer = await fetch(location.href, { cache: "no-store", redirect: "manual", headers });
  await answer.body?.cancel();
  const notice = answer.headers.get("Sandboxd-Notice");
  return notice !== page.notice && notice !== "asleep" && notice !== "frozen";
}

status.hidden = false;
for (;;) {
  try {
    if (await (page.wait ? wait() : changed())) break;
  } catch {
    await pause(every); // sandboxd does not answer now
  }
}
location.reload();
