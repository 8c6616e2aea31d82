// Fetches the scrollback that a sandbox keeps.

// scrollbackOf returns {full, text}: whether a program has the whole screen, and the scrollback, "" when the sandbox keeps none or it
// is left out. internal/terminal/text.go has the parts.
export async function scrollbackOf(url, part = "") {
  const to = new URL(url, location.href);
  if (part) to.searchParams.set("part", part);
  const response = await fetch(to);
  const got = response.ok && !response.redirected;
  return { full: got && response.headers.has("X-Terminal-Full"), text: got ? await response.text() : "" };
}
