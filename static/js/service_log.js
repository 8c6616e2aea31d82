// A log that is followed: what the program writes is added as it comes, as text without the sequences of terminals.
import { plainText } from "../terminal/sequences.js";
import { live } from "./live.js";

const mostText = 512 * 1024; // characters that the page keeps
const pace = 100; // ms between two additions, however much a program writes

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
    if (begins) log.textContent = waits = ""; // what the page has comes first
    begins = false;
    waits = (waits + event.data).slice(-mostText);
    timer ||= setTimeout(add, pace);
  });
  channel.addEventListener("lost", () => say("Reconnecting…", "busy"));
  channel.addEventListener("ended", (event) => say(event.data ? "Not following" : "Ended", "still"));
}

// trim forgets the oldest pieces of a log that has grown long.
function trim(log) {
  log.normalize();
  const text = log.firstChild;
  if (text && text.length > mostText) text.deleteData(0, text.length - mostText + mostText / 4);
}

for (const log of document.querySelectorAll("[data-log-topic]")) {
  if (log.dataset.logTopic) follow(log, document.getElementById("log-state"));
}
