// send uploads a body with progress, which fetch cannot. It resolves to {status, body, problem}, also for refusals; without
// a response it throws a Problem. uploaded, if given, is called once the server has the whole body; from then on it may take as long
// as it likes.
import { onResume, pageSignal } from "../js/page_lifecycle.js";
import { cancelled, Problem, refused, signedOut } from "./api.js";

const silence = 60_000; // ms without progress after which a connection counts as lost

export function send({ method = "PUT", url, headers, body, progress, uploaded, signal }) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    let timer = 0;
    const alive = () => {
      clearTimeout(timer);
      timer = setTimeout(() => request.abort(), silence);
    };
    const lost = () => reject(signal.aborted ? cancelled() : new Problem(0, "offline", "The connection was lost."));
    const stop = () => request.abort();
    const ends = AbortSignal.any([signal, pageSignal()]);
    request.open(method, url);
    request.setRequestHeader("Accept", "application/problem+json");
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => {
      alive();
      progress(event.loaded);
    });
    request.upload.addEventListener("load", () => {
      if (!uploaded) return;
      clearTimeout(timer);
      uploaded();
    });
    request.addEventListener("load", () => {
      const { status, responseText, responseURL } = request;
      if (responseURL && new URL(responseURL).pathname !== new URL(url, location.href).pathname) {
        return reject(signedOut());
      }
      resolve({ status, body: responseText, problem: refused(status, request.getResponseHeader("Content-Type") ?? "", responseText) });
    });
    request.addEventListener("error", lost);
    request.addEventListener("abort", lost);
    request.addEventListener("loadend", () => {
      clearTimeout(timer);
      ends.removeEventListener("abort", stop);
    });
    ends.addEventListener("abort", stop);
    if (ends.aborted) return lost();
    alive();
    request.send(body);
  });
}

// wait waits, but less when the browser is online again or the page is back.
export function wait(ms, signal) {
  return new Promise((resolve, reject) => {
    const over = new AbortController();
    const go = () => {
      over.abort();
      clearTimeout(timer);
      resolve();
    };
    const timer = setTimeout(go, ms);
    onResume(go, { signal: over.signal });
    signal.addEventListener("abort", () => {
      go();
      reject(cancelled());
    }, { signal: over.signal });
  });
}
