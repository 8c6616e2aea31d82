// Saves files that are pasted or dropped into a terminal in the sandbox, and types their paths.
import { filesOf, nameFor, quote } from "./pasting.js";

const mostFiles = 20;
const largest = 100 * 1024 * 1024; // bytes; larger files belong in the file browser, which can resume uploads

// put(name, file, signal) saves a file and resolves to its path. say(text, tone, stop) shows the progress, "" hides it.
// type(text) types.
export class FileInput {
  constructor(root, { put, say, type, signal }) {
    this.put = put;
    this.say = say;
    this.type = type;
    root.addEventListener("paste", (event) => this.#take(event, event.clipboardData, false), { capture: true, signal });
    root.addEventListener("dragover", (event) => this.#hover(event, root), { signal });
    root.addEventListener("dragleave", () => root.classList.remove("dropping"), { signal });
    root.addEventListener("drop", (event) => {
      root.classList.remove("dropping");
      this.#take(event, event.dataTransfer, true);
    }, { signal });
    this.signal = signal;
  }

  #hover(event, root) {
    if (![...event.dataTransfer.types].includes("Files")) return;
    event.preventDefault();
    event.dataTransfer.dropEffect = "copy";
    root.classList.add("dropping");
  }

  #take(event, data, dropped) {
    const files = filesOf(data);
    if (files.length === 0) return;
    event.preventDefault();
    event.stopPropagation();
    this.#send(files, dropped);
  }

  async #send(files, dropped) {
    const stop = new AbortController();
    this.signal.addEventListener("abort", () => stop.abort(), { once: true });
    const paths = [];
    try {
      if (files.length > mostFiles) throw new Error(`You can drop up to ${mostFiles} files into a terminal. Use the Files pane for more.`);
      for (const [i, file] of files.entries()) {
        if (file.size > largest) throw new Error(`${file.name} is too large for a terminal. Drop it into the Files pane.`);
        this.say(files.length > 1 ? `Saving file ${i + 1} of ${files.length}…` : "Saving the file…", "busy", () => stop.abort());
        paths.push(await this.put(nameFor(file, dropped, new Date()), file, stop.signal));
      }
      this.say("", "");
    } catch (error) {
      this.say(stop.signal.aborted ? "" : `Not saved: ${error.message}`, "bad");
    }
    if (paths.length > 0) this.type(`${paths.map(quote).join(" ")} `);
  }
}
