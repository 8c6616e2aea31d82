// Draws the items of a conversation. Each has a view that is updated in place, so that what is open stays open while text comes.
import { button, h, icon } from "../js/dom.js";
import { hiddenIn, shown } from "./model.js";
import { Prose } from "./prose.js";

const longest = 20_000; // characters of an output that are drawn; the end counts most

// viewOf makes the view of an item. acts has what its buttons do.
export function viewOf(item, acts) {
  const Kind = kinds[item.kind] ?? Nothing;
  const view = new Kind(item, acts);
  view.element.classList.add("chat-item", `chat-${item.kind}`);
  view.element.dataset.n = item.n;
  view.update(item);
  return view;
}

class View {
  constructor(element) {
    this.element = element;
  }

  update(item) {
    this.element.classList.toggle("undone", Boolean(item.undone));
  }
}

class Nothing extends View {
  constructor() {
    super(h("div", { hidden: true }));
  }
}

class MessageView extends View {
  #body = h("div", { class: "chat-said" });

  constructor(item, acts) {
    super(h("article", { "aria-label": "You" }));
    const tools = h("div", { class: "chat-tools" },
      button("pencil", "Edit and send in a new conversation", () => acts.edit(item.n)),
      button("restart", "Send again in a new conversation", () => acts.retry(item.n)));
    this.element.append(this.#body, tools);
  }

  update(item) {
    super.update(item);
    const files = (item.data?.files ?? []).map((f) => h("span", { class: "chip quiet" }, icon("clip"), f.name));
    this.#body.replaceChildren(item.text, ...(files.length ? [h("div", { class: "chat-files" }, files)] : []));
  }
}

class TextView extends View {
  #prose = new Prose();

  constructor(item, acts) {
    super(h("article", { "aria-label": "Agent" }));
    this.element.append(this.#prose.element, h("div", { class: "chat-tools" }, button("branch", "Branch from here", () => acts.branch(item.n))));
  }

  update(item) {
    super.update(item);
    this.#prose.update(item.text);
    this.element.classList.toggle("growing", Boolean(item.open));
  }
}

class ThinkingView extends View {
  #text = h("div", { class: "chat-thought" });
  #title = h("span", {}, "Thinking…");

  constructor() {
    super(h("details"));
    this.element.append(h("summary", {}, icon("right", "fold"), this.#title), this.#text);
  }

  update(item) {
    super.update(item);
    this.#title.textContent = item.open ? "Thinking…" : "Thought";
    this.#text.textContent = item.text;
  }
}

const callStates = { ok: ["check", "Done"], error: ["warn", "Failed"], denied: ["close", "Refused"], cancelled: ["stop", "Stopped"], interrupted: ["warn", "Interrupted"] };

class CallView extends View {
  #state = h("span", { class: "chat-call-state" });
  #title = h("span", { class: "clip" });
  #facts = h("span", { class: "quiet chat-facts" });
  #code = h("pre", { class: "chat-code" });
  #output = h("pre", { class: "chat-output", tabindex: "0", "aria-label": "Output" });
  #more = h("div", { class: "chat-more" });

  constructor() {
    super(h("details"));
    this.element.append(h("summary", {}, this.#state, this.#title, this.#facts), h("div", { class: "chat-call-body" }, this.#code, this.#output, this.#more));
  }

  update(item) {
    super.update(item);
    const call = item.data ?? {};
    const busy = item.open && !call.status;
    const [name, word] = callStates[call.status] ?? (busy ? ["state-busy", "Running"] : ["state-stopped", "Ended"]);
    this.#state.replaceChildren(icon(name), h("span", { class: "visually-hidden" }, word));
    this.#state.dataset.state = call.status ?? (busy ? "busy" : "");
    this.#title.textContent = shown(titleOf(call));
    this.#facts.textContent = factsOf(call);
    const told = Boolean(call.diffs?.length) && !call.failed; // by what changed in files
    draw(this.#code, told ? "" : call.code || (call.title ? "" : argumentsOf(call)));
    draw(this.#output, told ? "" : tail(item.output || (item.open ? "" : call.result ?? "")));
    this.#more.replaceChildren(...(call.diffs ?? []).map(diffOf), ...(call.pictures ?? []).map(pictureOf).filter(Boolean));
    if (call.diffs?.length && !this.opened) this.element.open = this.opened = true;
  }
}

function draw(pre, text) {
  const safe = shown(text ?? "");
  if (pre.textContent !== safe) pre.textContent = safe;
  pre.hidden = !safe;
}

const tail = (text) => (text.length > longest ? `…${text.slice(-longest)}` : text);

function argumentsOf(call) {
  return call.args && Object.keys(call.args).length ? JSON.stringify(call.args, null, 2) : "";
}

function titleOf(call) {
  const first = (call.path || call.code || "").split("\n", 1)[0];
  return [call.title || call.tool || "Tool", first].filter(Boolean).join(": ");
}

function factsOf(call) {
  const facts = [];
  for (const d of call.diffs ?? []) facts.push(`+${d.Added ?? 0} −${d.Removed ?? 0}`);
  if (call.exit) facts.push(`exit code ${call.exit}`);
  if (call.took > 1e9) facts.push(`${(call.took / 1e9).toFixed(1)} s`);
  return facts.join(" · ");
}

const lineKinds = { "+": "added", "-": "removed", "@": "place" };

// diffOf draws a unified diff.
function diffOf(diff) {
  const word = diff.created ? "New file" : diff.deleted ? "Deleted" : "";
  const all = (diff.unified ?? "").replace(/\n$/, "").split("\n");
  const lines = all.slice(Math.max(all.findIndex((line) => line.startsWith("@@")), 0)).map((line) => h("div", { class: lineKinds[line[0]] ?? null }, shown(line) || " "));
  return h("figure", { class: "chat-diff" }, h("figcaption", {}, h("span", { class: "mono clip" }, shown(diff.path)), word && h("span", { class: "quiet" }, word)),
    diff.unified ? h("div", { class: "chat-diff-lines mono", tabindex: "0", "aria-label": `Changes of ${diff.path}` }, lines) : h("p", { class: "quiet" }, "Not shown: it is too large, or not text."));
}

function pictureOf(picture) {
  if (!/^image\/(png|jpeg|gif|webp)$/.test(picture.type)) return null;
  return h("img", { src: `data:${picture.type};base64,${picture.data}`, alt: "Picture that the tool made", class: "chat-picture" });
}

class QuestionView extends View {
  constructor(item, acts) {
    super(h("section"));
    this.acts = acts;
  }

  update(item) {
    super.update(item);
    const ask = item.data ?? {};
    const open = Boolean(item.open && !ask.answer);
    const text = ask.text ?? "";
    this.element.setAttribute("aria-label", open ? "The agent asks" : "A question of the agent");
    this.element.classList.toggle("asks", open);
    this.element.replaceChildren(...[
      h("p", { class: "chat-ask-title" }, icon("ask"), shown(ask.title || "May it do this?")),
      text && h("pre", { class: "chat-code whole" }, shown(text)),
      hiddenIn(text) && h("p", { class: "chat-warn" }, icon("warn"), "It has characters that are not visible. They are shown as codes."),
      ask.folder && h("p", { class: "quiet" }, "In ", h("span", { class: "mono" }, shown(ask.folder))),
      ...(ask.reasons ?? []).map((why) => h("p", { class: "chat-warn" }, icon("warn"), shown(why))),
      open ? this.#answers(item, ask) : h("p", { class: "quiet" }, outcome(ask)),
    ].filter(Boolean));
  }

  #answers(item, ask) {
    const answer = (text) => this.acts.answer(ask.id, text);
    const buttons = (ask.choices ?? []).map((c) => h("button", { type: "button", class: `button ${c.style === "allow" ? "primary" : ""}`, click: () => answer(c.id) }, shown(c.label)));
    const words = (!ask.choices?.length || ask.free) && h("form", { class: "chat-words", submit: (event) => {
      event.preventDefault();
      const text = event.target.elements.answer.value.trim();
      if (text) answer(text);
    } }, h("input", { class: "input", name: "answer", "aria-label": "Your answer", placeholder: ask.choices?.length ? "Or answer in words" : "Your answer", autocomplete: "off" }), h("button", { class: "button", type: "submit" }, "Answer"));
    return h("div", { class: "chat-answers" }, buttons, words);
  }
}

function outcome(ask) {
  if (ask.lapsed) return "Not answered: the turn ended.";
  const choice = ask.choices?.find((c) => c.id === ask.answer);
  return `Answered: ${shown(choice?.label ?? ask.answer ?? "")}`;
}

class PlanView extends View {
  constructor() {
    super(h("section", { "aria-label": "Plan" }));
  }

  update(item) {
    super.update(item);
    const steps = Array.isArray(item.data) ? item.data : [];
    const names = { completed: "state-done", in_progress: "state-busy", pending: "state-todo" };
    this.element.replaceChildren(h("ul", {}, steps.map((s) => h("li", { class: s.state }, icon(names[s.state] ?? "state-todo"), h("span", {}, shown(s.text))))));
  }
}

class NoticeView extends View {
  constructor() {
    super(h("p", { class: "quiet" }));
  }

  update(item) {
    super.update(item);
    this.element.textContent = shown(item.text);
  }
}

class CheckpointView extends View {
  constructor(item, acts) {
    super(h("div"));
    this.acts = acts;
  }

  update(item) {
    const point = item.data ?? {};
    const text = item.open ? "Saving a checkpoint…" : point.snapshot ? (item.undone ? "Undone" : "Checkpoint") : `No checkpoint: ${point.problem ?? "it could not be taken"}`;
    const act = !item.open && point.snapshot && (item.undone
      ? point.redo && button("", "", () => this.acts.redo(item.turn), { text: "Redo", kind: "bare low" })
      : button("undo", "", () => this.acts.undo(item.turn), { text: "Undo", kind: "bare low", title: "Put the files back as they were before this turn" }));
    this.element.replaceChildren(h("span", { class: "quiet" }, icon("clock"), text), ...(act ? [act] : []));
  }
}

const kinds = { message: MessageView, text: TextView, thinking: ThinkingView, call: CallView, question: QuestionView, plan: PlanView, notice: NoticeView, checkpoint: CheckpointView };
