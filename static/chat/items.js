// Draws the items of a conversation. Each has a view that is updated in place, so that what is open stays open while text comes.
import { button, h, icon } from "../js/dom.js";
import { commentable, linesOf, quotesOf } from "./comments.js";
import { hiddenIn, shown } from "./model.js";
import { fencesOf } from "./fences.js";
import { Prose, clipped, codeBlock } from "./prose.js";
import { RunView } from "./runs.js";
import { View, growing, outputOf, pictureOf, redraw } from "./view.js";

// viewOf makes the view of an item. acts has what its buttons do; null for a reader, who has none.
export function viewOf(item, acts) {
  const Kind = kinds[item.kind] ?? Nothing;
  const view = new Kind(item, acts);
  view.element.classList.add("chat-item", `chat-${item.kind}`);
  view.element.dataset.n = item.n;
  view.update(item);
  return view;
}

class Nothing extends View {
  constructor() {
    super(h("div", { hidden: true }));
  }
}

class MessageView extends View {
  #body = h("div", { class: "chat-said" });

  #text = null;

  constructor(item, acts) {
    super(h("article", { "aria-label": "You" }));
    this.acts = acts;
    this.element.append(this.#body);
    if (!acts) return;
    const tools = h("div", { class: "chat-tools" },
      button("pencil", "Edit and send in a new conversation", () => acts.edit(item.n)),
      button("restart", "Send again in a new conversation", () => acts.retry(item.n)));
    this.element.append(tools);
  }

  update(item) {
    super.update(item);
    if (item.text === this.#text) return;
    this.#text = item.text;
    const files = (item.data?.files ?? []).map((f) => pictureOf(f, f.name) ?? h("span", { class: "chip quiet" }, icon("clip"), f.name));
    this.#body.replaceChildren(...said(item.text, this.acts && ((block, code) => this.acts.run(item.n, block, code))), ...(files.length ? [h("div", { class: "chat-files" }, files)] : []));
  }
}

// said draws a person's text as it was written, with buttons at the code in it.
function said(text, run) {
  const parts = [];
  let at = 0;
  text = text.replace(/\r\n?/g, "\n");
  fencesOf(text).forEach((b, number) => {
    parts.push(...quoted(text.slice(at, b.from).replace(/\n$/, "")), codeBlock(b, run && (() => run(number, b.code))));
    at = b.to;
  });
  return [...parts, ...quoted(text.slice(at))];
}

// quoted draws the lines that comments are about as a diff, and the rest as it was written.
function quoted(text) {
  return quotesOf(text).flatMap((part) => (part.text === undefined ? [diffLines(part.place, part.lines)] : clipped(part.text)));
}

function diffLines(place, lines) {
  return h("figure", { class: "chat-diff" }, h("figcaption", {}, h("span", { class: "mono clip", title: shown(place) }, shown(place))),
    h("div", { class: "chat-diff-lines mono", role: "group", tabindex: "0", "aria-label": `Lines of ${place}` }, lines.map((l) => h("div", { class: lineKinds[l[0]] ?? null }, shown(l) || " "))));
}

class TextView extends View {
  #prose;

  constructor(item, acts) {
    super(h("article", { "aria-label": "Agent" }));
    this.#prose = new Prose(acts && ((block, code) => acts.run(item.n, block, code)));
    this.element.append(this.#prose.element);
    if (acts) this.element.append(h("div", { class: "chat-tools" }, button("branch", "Branch from here", () => acts.branch(item.n))));
  }

  update(item) {
    super.update(item);
    this.#prose.update(item.text, item.open);
    this.element.classList.toggle("growing", Boolean(item.open));
  }
}

class ThinkingView extends View {
  #show;
  #title = h("span");

  constructor() {
    super(h("details"));
    const text = h("div", { class: "chat-thought" });
    this.#show = growing(text);
    this.element.append(h("summary", {}, icon("right", "fold"), this.#title), text);
  }

  update(item) {
    super.update(item);
    redraw(this.#title, item.open, () => [item.open ? "Thinking…" : "Thought"]);
    this.#show(item.text);
  }
}

const callStates = { ok: ["check", "Done"], error: ["warn", "Failed"], denied: ["close", "Refused"], cancelled: ["stop", "Stopped"], interrupted: ["warn", "Interrupted"] };

class CallView extends View {
  #state = h("span", { class: "chat-call-state" });
  #title = h("span", { class: "clip" });
  #facts = h("span", { class: "quiet chat-facts" });
  #code = h("pre", { class: "chat-code" });
  #output = outputOf("Output");
  #more = h("div", { class: "chat-more" });
  #call = null; // what is drawn of it but its output
  #busy = false;
  #asked = false; // the person is asked whether it may run

  constructor(item, acts) {
    super(h("details"));
    this.acts = acts;
    this.element.append(h("summary", {}, this.#state, this.#title, this.#facts), h("div", { class: "chat-call-body" }, this.#code, this.#output.element, this.#more));
  }

  // asks says whether the person is asked about it.
  asks(open) {
    this.#asked = open;
    this.#drawState();
  }

  #drawState() {
    const { status } = this.#call ?? {};
    const open = this.#asked ? ["ask", "Waits for your answer"] : ["state-busy", "Running"];
    const [name, word] = callStates[status] ?? (this.#busy ? open : ["state-stopped", "Ended"]);
    this.#state.replaceChildren(icon(name), h("span", { class: "visually-hidden" }, word));
    this.#state.dataset.state = status ?? (this.#busy ? "busy" : "");
  }

  update(item) {
    super.update(item);
    const call = item.data ?? {};
    const told = Boolean(call.diffs?.length) && !call.failed; // by what changed in files
    this.#output.show(told ? "" : item.output || (item.open ? "" : call.result ?? ""));
    if (item.data === this.#call) return; // it has only written more
    this.#call = item.data;
    this.#busy = item.open && !call.status;
    this.#drawState();
    this.#title.textContent = shown(titleOf(call));
    this.#facts.textContent = factsOf(call);
    const code = told ? "" : call.code || (call.title ? "" : argumentsOf(call));
    redraw(this.#code, code, () => clipped(shown(code)));
    this.#code.hidden = !code;
    this.#drawMore(call);
    if ((call.diffs?.length || call.pictures?.length) && !this.opened) this.element.open = this.opened = true;
  }

  // #drawMore leaves alone what has not changed: a comment may be being written there.
  #drawMore({ diffs = [], pictures = [] }) {
    redraw(this.#more, [diffs, pictures.length], () => [...diffs.map((d) => diffOf(d, this.acts)), ...pictures.map((p) => pictureOf(p)).filter(Boolean)]);
  }
}

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

// diffOf draws a unified diff. A person can comment on its lines.
function diffOf(diff, acts) {
  const word = diff.created ? "New file" : diff.deleted ? "Deleted" : "";
  const rows = linesOf(diff.unified ?? "").map((l) => ({ ...l, element: h("div", { class: lineKinds[l.text[0]] ?? null }, shown(l.text) || " ") }));
  const box = h("div", { class: "chat-diff-lines mono", role: "group", tabindex: "0", "aria-label": `Changes of ${diff.path}` }, rows.map((r) => r.element));
  if (acts) commentable(box, rows, (c) => acts.comment({ path: diff.path, ...c }));
  return h("figure", { class: "chat-diff" }, h("figcaption", {}, h("span", { class: "mono clip" }, shown(diff.path)), word && h("span", { class: "quiet" }, word)),
    diff.unified ? box : h("p", { class: "quiet" }, diff.same ? (diff.created ? "Empty file" : "No changes") : "Not shown: it is too large, or not text."));
}

const unfolded = 4; // lines of a question that has been answered

class QuestionView extends View {
  constructor(item, acts) {
    super(h("section"));
    this.acts = acts;
  }

  update(item) {
    super.update(item);
    const ask = item.data ?? {};
    const open = Boolean(item.open && !ask.answer);
    this.element.setAttribute("aria-label", open ? "The agent asks" : "A question of the agent");
    this.element.classList.toggle("asks", open);
    redraw(this.element, [open, ask], () => this.#draw(item, ask, open)); // an answer may be being written there
  }

  #draw(item, ask, open) {
    const text = ask.text ?? "";
    return [
      h("p", { class: "chat-ask-title" }, icon("ask"), shown(ask.title || "May it do this?")),
      text && asked(text, open),
      hiddenIn(text) && h("p", { class: "chat-warn" }, icon("warn"), "It has characters that are not visible. They are shown as codes."),
      ask.folder && h("p", { class: "quiet" }, "In ", h("span", { class: "mono" }, shown(ask.folder))),
      ...(ask.reasons ?? []).map((why) => h("p", { class: "chat-warn" }, icon("warn"), shown(why))),
      open && this.acts ? this.#answers(item, ask) : h("p", { class: "quiet" }, outcome(ask)),
    ].filter(Boolean);
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

// asked draws what the agent wants to do. Once that is decided a long text is folded.
function asked(text, open) {
  const whole = h("pre", { class: "chat-code whole", role: "group", tabindex: "0", "aria-label": "What it wants to do" }, shown(text));
  const lines = text.trimEnd().split("\n");
  if (open || lines.length <= unfolded) return whole;
  return h("details", { class: "fold" }, h("summary", {}, icon("right"), h("span", { class: "mono clip" }, shown(lines[0])), h("span", { class: "quiet" }, `${lines.length} lines`)), whole);
}

function outcome(ask) {
  if (!ask.lapsed && !ask.answer) return "Not answered yet.";
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
    redraw(this.element, steps, () => [h("ul", {}, steps.map((s) => h("li", { class: s.state }, icon(names[s.state] ?? "state-todo"), h("span", {}, shown(s.text)))))]);
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

const occupied = "Not while the agent works. Stop it first, or wait until it is done.";
const ends = "Programs that run in the sandbox end.";

class CheckpointView extends View {
  #item = null;
  #acting = false; // the answer to a press has not come: it can take some seconds
  #busy = false; // the agent works or asks: the server refuses to change files meanwhile

  constructor(item, acts) {
    super(h("div"));
    this.acts = acts;
  }

  // busy says whether the agent works or asks.
  busy(on) {
    this.#busy = on;
    this.update(this.#item);
  }

  update(item) {
    this.#item = item;
    const point = item.data ?? {};
    const text = item.open ? "Saving a checkpoint…" : point.snapshot ? (item.undone ? "Undone" : "Checkpoint") : `No checkpoint: ${point.problem ?? "it could not be taken"}`;
    const act = !item.open && point.snapshot && (item.undone ? point.redo && this.#button("", "Redo", "Redoing…", this.acts.redo, `Take the undo back. ${ends}`) : this.#button("undo", "Undo", "Undoing…", this.acts.undo, `Put the files back as they were before this turn. ${ends}`));
    this.element.title = act && this.#busy ? occupied : ""; // a button that is disabled has no pointer
    redraw(this.element, [text, Boolean(act), this.#acting, this.#busy], () => [h("span", { class: "quiet" }, icon("clock"), text), ...(act ? [act] : [])]);
  }

  #button(name, text, acting, act, title) {
    const off = this.#acting || this.#busy;
    return button(this.#acting ? "state-busy" : name, "", () => this.#press(act), { text: this.#acting ? acting : text, kind: "bare low", "data-key": "act", "aria-disabled": off && "true", title: this.#busy ? occupied : title });
  }

  async #press(act) {
    if (this.#acting || this.#busy) return;
    this.#acting = true;
    this.update(this.#item);
    await act(this.#item.turn);
    this.#acting = false;
    this.update(this.#item);
  }
}

const kinds = { message: MessageView, text: TextView, thinking: ThinkingView, call: CallView, question: QuestionView, plan: PlanView, notice: NoticeView, checkpoint: CheckpointView, run: RunView };
