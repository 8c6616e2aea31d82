// Pages and scripts that are asked for again when the network fails, as when one of the computer's networks comes or goes
// (ERR_NETWORK_CHANGED): a browser does not load a script again that has failed once. Without a browser's globals, for tests.

export const pauses = [150, 350, 700, 1300]; // ms between the attempts

// What may be large is left to the browser: a worker may be ended while it passes it on.
const bulky = /\/(archive|download|files)$/;

// takes reports whether a request is for a page or a script of it.
export function takes({ mode, destination, method, url }) {
  return (mode === "navigate" || destination === "script") && method === "GET" && !bulky.test(new URL(url).pathname);
}

// answer gives the answer to request, from the browser's own attempt if it makes one (preloaded). The last failure is the
// caller's, so that the browser shows its own page about it.
export async function answer(request, preloaded, ask, wait) {
  let attempt = preloaded;
  for (const pause of pauses) {
    try {
      return (await attempt) ?? (await ask(request));
    } catch (error) {
      if (request.signal.aborted) throw error; // the person has gone elsewhere
    }
    attempt = undefined;
    await wait(pause);
  }
  return ask(request);
}

// foreign reports whether an answer is not of a sandboxd: another server has its address now.
export function foreign(response) {
  return response.type === "basic" && !response.headers.has("X-Request-Id");
}
