// The choice of an agent for a new conversation: sandboxd's own, or one of others that is installed in the sandbox, or can be.
import { h, icon } from "../js/dom.js";

const every = 1000; // ms between two looks at an installation
const own = { id: "sandboxd", name: "sandboxd", summary: "sandboxd's own agent. It needs nothing in the sandbox.", state: "installed", installed_version: "" };
const lacking = { ...own, state: "lacking" };

// stateText says what an agent is in the sandbox.
export function stateText(agent) {
  switch (agent.state) {
    case "installing":
      return `Installing… ${agent.percent} %`;
    case "failed":
      return agent.problem;
    case "interrupted":
      return "The installation was interrupted.";
    case "lacking":
      return "It has no model. It needs a provider of the kind Anthropic, OpenAI or Ollama.";
    case "unknown":
      return "Wake the sandbox to see whether it is installed.";
  }
  return agent.installed_version && agent.installed_version !== agent.version ? `Version ${agent.installed_version}; ${agent.version} can be installed.` : "";
}

// ready tells whether a conversation can begin with an agent.
export const ready = (agent) => (agent.id === own.id ? agent.state === "installed" : agent.installed_version !== "" && agent.state !== "installing");

// isOwn tells whether an agent is sandboxd's own: of no other is the model a matter of sandboxd's.
export const isOwn = (id) => id === own.id;

// Agents is the chooser, in its element. api sends requests to "/sandboxes/NAME/agents"; act runs what may fail, and says why it did; changed()
// is called when another one is chosen.
export class Agents {
  #all = [];
  #problem = "";
  #timer = 0;
  #own = own;
  chosen = own.id;

  constructor(api, act, changed) {
    Object.assign(this, { api, act, changed });
    this.element = h("fieldset", { class: "chat-agents" });
    this.#draw();
  }

  // show looks at what there is, and again while something is being installed and the chooser is shown.
  async show() {
    clearTimeout(this.#timer);
    const { agents, problem } = (await this.act(() => this.api.ask("GET"))) ?? { agents: this.#all, problem: this.#problem };
    this.#all = agents;
    this.#problem = problem;
    if (!this.#list.some((a) => a.id === this.chosen && ready(a))) this.#choose(own.id);
    this.#draw();
    if (this.element.isConnected && agents.some((a) => a.state === "installing")) this.#timer = setTimeout(() => this.show(), every);
  }

  // models says whether sandboxd's own agent has any.
  set models(any) {
    if (any === (this.#own === own)) return;
    this.#own = any ? own : lacking;
    this.#draw();
  }

  get #list() {
    return [this.#own, ...this.#all];
  }

  #choose(id) {
    this.chosen = id;
    this.changed();
  }

  #draw() {
    const focused = this.element.contains(document.activeElement) ? document.activeElement.dataset.key : "";
    this.element.replaceChildren(h("legend", {}, "Agent"), ...this.#list.map((a) => this.#row(a)), ...(this.#problem ? [h("p", { class: "chat-warn" }, icon("warn"), this.#problem)] : []));
    if (focused) this.element.querySelector(`[data-key="${CSS.escape(focused)}"]`)?.focus();
  }

  #row(a) {
    const radio = h("input", { type: "radio", name: "chat-agent", value: a.id, checked: a.id === this.chosen && ready(a), disabled: !ready(a), "data-key": `choose ${a.id}`, change: () => this.#choose(a.id) });
    const facts = a.id === own.id ? [] : [h("span", { class: "quiet chat-facts" }, h("a", { href: a.licence_url, rel: "noreferrer noopener", target: "_blank" }, a.licence), ` · ${a.size_mb} MB`)];
    const text = stateText(a);
    const state = text ? [h("span", { class: a.state === "failed" ? "chat-agent-bad" : "quiet", title: a.line || undefined }, text)] : [];
    const bar = a.state === "installing" ? [h("progress", { max: "100", value: String(a.percent), "aria-label": `Installing ${a.name}` })] : [];
    return h("div", { class: "chat-agent", "data-agent": a.id, "data-state": a.state }, h("label", {}, radio, h("span", {}, h("strong", {}, a.name), h("span", { class: "quiet" }, a.summary), ...facts, ...state, ...bar)), ...this.#buttons(a));
  }

  #buttons(a) {
    if (a.id === own.id) return [];
    const remove = () => this.api.ask("DELETE", `/${a.id}`);
    if (a.state === "installing") return [this.#button(a, "Cancel", remove)];
    const install = { available: "Install", unknown: "Install", failed: "Try again", interrupted: "Try again" }[a.state] ?? (a.installed_version !== a.version ? "Update" : "");
    const buttons = install ? [this.#button(a, install, () => this.api.ask("POST", `/${a.id}/install`))] : [];
    if (a.installed_version) buttons.push(this.#button(a, "Remove", () => confirm(`Remove ${a.name} from this sandbox?`) && remove()));
    return buttons;
  }

  #button(a, label, act) {
    return h("button", { type: "button", class: "button low", "aria-label": `${label} ${a.name}`, "data-key": `${label} ${a.id}`, click: async (event) => {
      event.currentTarget.disabled = true;
      await this.act(act);
      await this.show();
    } }, label);
  }
}
