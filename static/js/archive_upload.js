// Restores a file: [data-archive-upload] is the form of views.ArchiveUpload. The file is sent with progress, which a form cannot,
// and stays chosen when the server refuses it.
import { send } from "../files/upload_request.js";
import { size, duration } from "../files/format.js";

const look = 3000; // ms over which the speed is averaged

// ArchiveUpload is one upload and what comes of it. No DOM in here.
export class ArchiveUpload {
  #away = null;
  #marks = []; // [time, bytes sent]
  state = "idle"; // or "sending", "working" (the server has all of it), "cancelling", "failed" (see problem), "done" (see answer)
  sent = 0;
  total = 0;
  problem = null;
  answer = null;

  // options: send(request) as in upload_request.js, undo(url) cuts off what the server does with the file and says whether there
  // was anything, changed(), now().
  constructor(options) {
    Object.assign(this, options);
  }

  get busy() {
    return ["sending", "working", "cancelling"].includes(this.state);
  }

  async start({ method, url, file, cancel = "" }) {
    this.#away = new AbortController();
    this.#marks = [];
    Object.assign(this, { sent: 0, total: file.size, problem: null, answer: null, undoURL: cancel });
    this.#turn("sending");
    try {
      const { body, problem } = await this.send({
        method, url, headers: {}, body: file, signal: this.#away.signal,
        progress: (sent) => this.#progress(sent), uploaded: () => this.state === "sending" && this.#turn("working"),
      });
      if (problem.status >= 400) throw problem;
      this.answer = JSON.parse(body);
      this.#turn("done");
    } catch (problem) {
      this.#failed(problem);
    }
  }

  // stops says whether it can be cancelled: not once the server may be making a sandbox.
  get stops() {
    return this.state === "sending" || (this.state === "working" && this.undoURL !== "");
  }

  // cancel stops the upload, and what the server does with the file. One that it has restored by then is "done".
  async cancel() {
    if (!this.stops) return;
    const working = this.state === "working";
    this.#turn("cancelling");
    if (working && (await this.undo(this.undoURL))) return; // the answer to the upload says what has come of it
    this.#away.abort();
    if (working) await this.undo(this.undoURL); // it may have begun just then
  }

  // words says how far it is.
  words() {
    if (this.state === "cancelling") return "Cancelling…";
    if (this.state === "working") return this.undoURL ? "Checking and restoring…" : "Checking, then making the sandbox…";
    const speed = this.#speed();
    const left = speed > 0 && this.sent < this.total ? ` · ${duration((this.total - this.sent) / speed)} left` : "";
    return `${size(this.sent)} of ${size(this.total)} uploaded${left}`;
  }

  #progress(sent) {
    this.sent = Math.min(sent, this.total);
    const now = this.now();
    this.#marks = [...this.#marks.filter(([t]) => now - t < look), [now, this.sent]];
    this.changed();
  }

  #speed() {
    const [first] = this.#marks;
    const last = this.#marks.at(-1);
    return first && last[0] - first[0] > 400 ? ((last[1] - first[1]) * 1000) / (last[0] - first[0]) : 0;
  }

  #failed(problem) {
    const cut = this.state === "working" && problem.code === "offline";
    this.problem = cut ? { message: "The connection was lost after the upload. The sandbox’s own page shows what has become of it." } : problem;
    this.#turn(this.state === "cancelling" || problem.code === "left" ? "idle" : "failed");
  }

  #turn(state) {
    this.state = state;
    this.changed();
  }
}

// undo cuts off a restore, and says whether there was one.
async function undo(url) {
  const answer = await fetch(url, { method: "DELETE" }).catch(() => null);
  return Boolean(answer?.ok);
}

// enhance makes a form send its file.
export function enhance(form) {
  const find = (what) => form.querySelector(what);
  const file = find('[type="file"]');
  const submit = find('[type="submit"]');
  const stop = find("[data-cancel-upload]");
  const stand = find("[data-stand]");
  const upload = new ArchiveUpload({ send, undo, changed: draw, now: () => performance.now() });

  function draw() {
    submit.disabled = upload.busy || upload.state === "done";
    file.disabled = upload.busy;
    stand.hidden = !upload.busy;
    stop.hidden = !upload.stops;
    const bar = stand.querySelector("progress");
    if (upload.state === "sending" && upload.total) bar.value = upload.sent / upload.total;
    else bar.removeAttribute("value");
    if (upload.busy) say(upload.words());
    if (upload.state === "failed") blame(upload.problem);
    if (upload.state === "done") leave(upload.answer);
  }

  function say(text) {
    const words = stand.querySelector("[data-words]");
    if (words.textContent !== text) words.textContent = text;
  }

  function blame({ message, field }) {
    const place = find(`[data-fault="${CSS.escape(field ?? "")}"]`) ?? find('[data-fault="file"]');
    place.textContent = message;
    place.hidden = false;
    const input = place.parentElement.querySelector("input, select");
    input.setAttribute("aria-invalid", "true");
    input.focus();
  }

  function leave({ name }) {
    location.assign(form.dataset.cancel ? form.dataset.next : form.dataset.next + encodeURIComponent(name));
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (upload.busy) return;
    for (const fault of form.querySelectorAll("[data-fault]")) fault.hidden = true;
    for (const input of form.querySelectorAll("[aria-invalid]")) input.removeAttribute("aria-invalid");
    upload.start({ method: form.dataset.cancel ? "PUT" : "POST", url: urlOf(form), file: file.files[0], cancel: form.dataset.cancel });
  });
  stop.addEventListener("click", () => upload.cancel());
  addEventListener("beforeunload", (event) => upload.state === "sending" && event.preventDefault());
  acceptDrops(form, file, () => upload.busy);
  submit.disabled = false;
}

// urlOf is where a form's file goes, with what else is entered.
export function urlOf(form) {
  const [path, query] = form.dataset.url.split("?");
  const params = new URLSearchParams(query);
  for (const input of form.elements) {
    if (!input.name || input.type === "file") continue;
    if (input.type === "checkbox" && input.checked) params.set(input.name, "true");
    else if (input.type !== "checkbox" && input.value.trim()) params.set(input.name, input.value.trim());
  }
  return params.size ? `${path}?${params}` : path;
}

// acceptDrops lets a file be dropped on a form.
function acceptDrops(form, file, busy) {
  const holds = (event) => event.dataTransfer?.types.includes("Files") && !busy();
  form.addEventListener("dragover", (event) => {
    if (!holds(event)) return;
    event.preventDefault();
    form.classList.add("into");
  });
  form.addEventListener("dragleave", (event) => form.contains(event.relatedTarget) || form.classList.remove("into"));
  form.addEventListener("drop", (event) => {
    form.classList.remove("into");
    if (!holds(event)) return;
    event.preventDefault();
    const [dropped] = event.dataTransfer.files;
    if (!dropped) return;
    const chosen = new DataTransfer();
    chosen.items.add(dropped);
    file.files = chosen.files;
    file.dispatchEvent(new Event("change", { bubbles: true }));
  });
}

for (const form of globalThis.document?.querySelectorAll?.("[data-archive-upload]") ?? []) enhance(form);
