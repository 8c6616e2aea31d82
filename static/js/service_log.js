// A log that is followed: what the program writes is added as it comes, as text without the sequences of terminals.
import { coloursOnly } from "../terminal/sequences.js";

const mostText = 512 * 1024; // characters that the page keeps

function plain(text) {
  return coloursOnly(text).replace(/\x1b\[[\d;:]*m/gu, "");
}

async function follow(log, state) {
  const say = (text, tone) => {
    if (!state) return;
    state.textContent = text;
    state.className = `state tone-${tone}`;
  };
  try {
    const answer = await fetch(log.dataset.logStream);
    if (!answer.ok || answer.redirected) throw new Error("no stream");
    log.textContent = ""; // the stream begins with what the page has
    say("Following", "good");
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      log.append(plain(next.value));
      trim(log);
    }
    say("Ended", "still");
  } catch {
    say("Not following", "still");
  }
}

// trim forgets the oldest pieces of a log that has grown long.
function trim(log) {
  log.normalize();
  const text = log.firstChild;
  if (text && text.length > mostText) text.deleteData(0, text.length - mostText + mostText / 4);
}

for (const log of document.querySelectorAll("[data-log-stream]")) {
  if (log.dataset.logStream) follow(log, document.getElementById("log-state"));
}
