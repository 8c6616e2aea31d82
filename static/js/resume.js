// Resumes a frozen sandbox when a person opens its page, or comes back to it: that takes a tenth of a second. A page that
// nobody sees leaves it frozen, and one that is frozen under a person's eyes waits for the button.
function resume() {
  const form = document.querySelector("#ws-still[data-resume] form");
  if (!form || document.visibilityState !== "visible") return;
  fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)), redirect: "manual" })
    .catch(() => {}); // the button stays
}

resume();
document.addEventListener("visibilitychange", resume);
