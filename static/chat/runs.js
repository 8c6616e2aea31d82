// Draws code that a person has run, and what it writes.
import { button, h, icon } from "../js/dom.js";
import { shown } from "./model.js";
import { View, outputOf, pictureOf } from "./view.js";

const states = { ok: ["check", "Done"], error: ["warn", "Failed"], timeout: ["clock", "Ended after 10 minutes"], cancelled: ["stop", "Stopped"], interrupted: ["warn", "Interrupted"] };

export class RunView extends View {
  #state = h("span", { class: "chat-call-state" });
  #title = h("span", { class: "clip" });
  #facts = h("span", { class: "quiet chat-facts" });
  #problem = h("p", { class: "chat-warn", hidden: true });
  #out = outputOf("Output");
  #err = outputOf("Errors", "stderr");
  #pictures = h("div", { class: "chat-more" });
  #run = null; // what is drawn of it but its output

  constructor(item, acts) {
    super(h("details", { open: true }));
    this.acts = acts;
    this.stop = button("stop", "", () => acts.stopRun(item.n), { text: "Stop", kind: "low", hidden: true });
    this.element.append(h("summary", {}, this.#state, this.#title, this.#facts),
      h("div", { class: "chat-call-body" }, this.stop, this.#out.element, this.#err.element, this.#problem, this.#pictures));
  }

  update(item) {
    super.update(item);
    this.#out.show(item.output ?? "");
    this.#err.show(item.text ?? "");
    if (item.data === this.#run) return;
    this.#run = item.data;
    const run = item.data ?? {};
    const status = run.status || (item.open ? "" : "interrupted");
    const [name, word] = item.open ? ["state-busy", "Running"] : (states[status] ?? states.error);
    this.#state.replaceChildren(icon(name), h("span", { class: "visually-hidden" }, word));
    this.#state.dataset.state = item.open ? "busy" : status;
    this.#title.textContent = `${run.auto ? "Ran by itself" : "Run"}: ${run.language ?? ""} · ${shown((run.code ?? "").trim().split("\n", 1)[0].slice(0, 200))}`;
    this.#facts.textContent = item.open ? "" : factsOf(run, status, word);
    this.stop.hidden = !item.open || !this.acts;
    this.#problem.hidden = !run.problem;
    this.#problem.textContent = shown(run.problem ?? "");
    if (item.open) return;
    const pictures = (run.pictures ?? []).map((p) => pictureOf(p)).filter(Boolean);
    this.#pictures.replaceChildren(...pictures, ...(item.output || item.text || run.problem || pictures.length ? [] : [h("p", { class: "quiet" }, "It wrote nothing.")]));
  }
}

function factsOf(run, status, word) {
  const facts = [];
  if (status !== "ok" && status !== "error") facts.push(word.toLowerCase());
  if (Number.isInteger(run.exit)) facts.push(`exit code ${run.exit}`);
  if (run.took) facts.push(run.took < 1e9 ? `${Math.round(run.took / 1e6)} ms` : `${(run.took / 1e9).toFixed(1)} s`);
  return facts.join(" · ");
}
