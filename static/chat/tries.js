// The same message to agents in several clones of the sandbox.
import { h } from "../js/dom.js";
import { closeButton, modal } from "../files/dialog.js";
import { Conversations } from "./api.js";

const fewest = 2;
const most = 8;

// tryIt asks how often, begins, and resolves to the address of the page that shows the tries; "" when the person has changed their mind.
// api is a Conversations; message has text, agent, model and mode. It throws a Problem when nothing was begun.
export async function tryIt(api, message, ask = askCount) {
  const n = Number(await ask());
  if (!n) return "";
  const name = api.base.replace(/\/conversations$/, "");
  const trial = await new Conversations(`${name}/trials`, api.box).create({ ...message, n });
  return `${name}/tries/${trial.id}`;
}

// askCount resolves to how often, as a text; "" for not at all.
function askCount() {
  const count = h("input", { class: "input", id: "try-count", type: "number", min: fewest, max: most, value: "3", required: true });
  const form = h("form", { method: "dialog", class: "sheet", submit: () => (start.value = count.value) },
    h("div", { class: "sheet-head" }, h("div", {}, h("h2", { id: "chat-tries" }, "Try it several times"),
      h("p", { class: "quiet" }, "Clones of this sandbox are made, and an agent in each gets your message. Compare what they do, and keep one.")), closeButton()),
    h("div", { class: "field" }, h("label", { for: "try-count" }, "Tries"), count));
  const start = h("button", { type: "submit", class: "button primary", value: count.value }, "Start");
  form.append(h("div", { class: "buttons end" }, h("button", { type: "button", class: "button", click: (event) => event.target.closest("dialog").close("") }, "Cancel"), start));
  return modal("chat-tries", form);
}
