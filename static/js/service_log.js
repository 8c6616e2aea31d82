// Follows a log: appends output as it comes, without its escape sequences.
import { plainText } from "../terminal/sequences.js";
import { live } from "./live.js";

const mostText = 512 * 1024; // characters kept in the page
const pace = 100; // ms between two updates

function follow(log, state) {
  const say = (text, tone) => {
    if (!state) return;
    state.textContent = text;
    state.className = `state tone-${tone}`;
  };
  const channel = live.open(log.dataset.logTopic);
  let begins = true;
  let waits = "";
  let timer = 0;
  const add = () => {
    log.append(plainText(waits));
    waits = "";
    timer = 0;
    trim(log);
  };
  channel.addEventListener("opened", () => {
    begins = true;
    say("Following", "good");
  });
  channel.addEventListener("text", (event) => {
    if (begins) log.textContent = waits = ""; // the server sends the log from the start
    begins = false;
    waits = (waits + event.data).slice(-mostText);
    timer ||= setTimeout(add, pace);
  });
  channel.addEventListener("lost", () => say("Reconnecting…", "busy"));
  channel.addEventListener("ended", (event) => say(event.data ? "Not following" : "Ended", "still"));
}

// trim removes the oldest part of a long log.
function trim(log) {
  log.normalize();
  const text = log.firstChild;
  if (text && text.length > mostText) text.deleteData(0, text.length - mostText + mostText / 4);
}

for (const log of document.querySelectorAll("[data-log-topic]")) {
  if (log.dataset.logTopic) follow(log, document.getElementById("log-state"));
}
