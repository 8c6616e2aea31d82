// The client for the conversations of one sandbox.
import { Problem, problemOf, refused } from "../files/api.js";

const patience = 60_000; // ms

// Conversations sends requests to the address base ("/sandboxes/NAME/conversations"). box is the id of the sandbox that the page shows.
export class Conversations {
  constructor(base, box) {
    this.base = base;
    this.box = box;
  }

  // ask sends a request and returns what it answers, or throws a Problem.
  async ask(method, path = "", body = undefined, query = {}) {
    const params = new URLSearchParams({ sandbox_id: this.box, ...query });
    try {
      const answer = await fetch(`${this.base}${path}?${params}`, {
        method, body: body && JSON.stringify(body), headers: body ? { "Content-Type": "application/json" } : {}, signal: AbortSignal.timeout(patience),
      });
      const text = await answer.text();
      if (!answer.ok) throw refused(answer.status, answer.headers.get("Content-Type") ?? "", text);
      return text ? JSON.parse(text) : null;
    } catch (err) {
      throw err instanceof Problem ? err : problemOf(err);
    }
  }

  list = () => this.ask("GET");
  create = (options) => this.ask("POST", "", options);
  view = (id, before = 0) => this.ask("GET", `/${id}`, undefined, before ? { before } : {});
  change = (id, fields) => this.ask("PATCH", `/${id}`, fields);
  remove = (id) => this.ask("DELETE", `/${id}`);
  send = (id, message) => this.ask("POST", `/${id}/messages`, message);
  arrange = (id, ids) => this.ask("PUT", `/${id}/queue`, { ids });
  now = (id, message) => this.ask("POST", `/${id}/queue/${encodeURIComponent(message)}/now`);
  answer = (id, question, answer) => this.ask("POST", `/${id}/approvals/${encodeURIComponent(question)}`, { answer });
  cancel = (id) => this.ask("POST", `/${id}/cancel`);
  resume = (id) => this.ask("POST", `/${id}/resume`);
  branch = (id, item) => this.ask("POST", `/${id}/branch`, { item });
  edit = (id, item, text) => this.ask("POST", `/${id}/edit`, { item, text });
  run = (id, body) => this.ask("POST", `/${id}/runs`, body);
  stopRun = (id, run) => this.ask("POST", `/${id}/runs/${run}/cancel`);
  links = (id) => this.ask("GET", `/${id}/links`);
  makeLink = (id, ttl) => this.ask("POST", `/${id}/links`, { ttl });
  revokeLink = (id, link) => this.ask("DELETE", `/${id}/links/${link}`);
  undo = (id, turn) => this.ask("POST", `/${id}/turns/${turn}/undo`);
  redo = (id, turn) => this.ask("POST", `/${id}/turns/${turn}/redo`);

  // topic is what a page follows for changes.
  topic = (id) => `${this.base}/${id}?sandbox_id=${encodeURIComponent(this.box)}`;
}
