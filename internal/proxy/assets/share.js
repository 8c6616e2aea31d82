// Removes the secret from the address, exchanges it for a cookie, and opens the shared page.
const secret = location.hash.slice(1);
history.replaceState(null, "", location.pathname); // the page that comes next can read this tab's history

const at = (id) => document.getElementById(id);

function tell(title, text, again) {
  document.title = at("title").textContent = title;
  at("text").textContent = text;
  at("again").hidden = !again;
}

async function open() {
  tell("Opening a shared link…", "This takes a moment.", false);
  let answer;
  try {
    answer = await fetch(location.pathname, {
      method: "POST", body: secret, cache: "no-store", redirect: "error", referrerPolicy: "no-referrer",
      headers: { Accept: "application/problem+json", "Content-Type": "text/plain" },
    });
  } catch {
    tell("No answer", "The server did not answer. Check your connection.", true);
    return;
  }
  if (answer.status === 204) {
    location.replace("/");
  } else if (answer.status === 404) {
    const problem = await answer.json().catch(() => ({}));
    const title = { share_expired: "This link has expired", share_revoked: "This link was revoked" }[problem.code];
    if (title) tell(title, "Ask the person who sent it for a new one.", false);
    else tell("This link does not work", "It has expired, was revoked, or is not complete. Ask the person who sent it for a new one.", false);
  } else {
    tell("Not now", "The server could not open this link just now. Try again in a moment.", true);
  }
}

at("again").addEventListener("click", open);
addEventListener("hashchange", () => location.reload()); // another link of this port, opened in the same tab

if (/^[A-Za-z0-9_-]{43}$/.test(secret)) {
  open();
} else {
  tell("This link is not complete", "Open it again as you received it, with everything after the #.", false);
}
