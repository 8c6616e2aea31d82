// Shows PDF files with pdf.js, page by page as they are scrolled to. Their scripts and forms do not run.
import * as pdfjs from "pdfjs-dist/legacy/build/pdf.mjs";
import worker from "pdfjs-dist/legacy/build/pdf.worker.min.mjs?url";
import { button, h } from "../js/dom.js";

const mostPages = 500;
const sharpest = 16_000_000; // pixels per page
const steps = [0.5, 0.75, 1, 1.25, 1.5, 2, 3];

pdfjs.GlobalWorkerOptions.workerSrc = new URL(worker, import.meta.url).href;

export async function show(url, { title }) {
  const loading = pdfjs.getDocument({ url, enableXfa: false, useSystemFonts: true, disableAutoFetch: true, useWasm: false, stopAtErrors: false, maxImageSize: 64_000_000 });
  const doc = await loading.promise;
  const view = new Pages(doc, title);
  await view.start();
  return { element: view.element, note: `${doc.numPages} ${doc.numPages === 1 ? "page" : "pages"}`, tools: view.tools, end: () => view.end(loading) };
}

class Pages {
  #zoom = 1;
  #drawn = new Map(); // element → task

  constructor(doc, title) {
    this.doc = doc;
    this.element = h("div", { class: "pdf-view", tabindex: "0", role: "document", "aria-label": title });
    this.level = h("span", { class: "zoom-level" }, "100 %");
    this.tools = h("span", { class: "zoom" }, button("minus", "Smaller", () => this.#step(-1)), this.level, button("plus", "Larger", () => this.#step(1)));
    this.seen = new IntersectionObserver((list) => list.forEach((e) => (e.isIntersecting ? this.#draw(e.target) : this.#drop(e.target))), { root: this.element, rootMargin: "400px 0px" });
  }

  async start() {
    const first = await this.doc.getPage(1);
    this.size = first.getViewport({ scale: 1 });
    const count = Math.min(this.doc.numPages, mostPages);
    for (let n = 1; n <= count; n++) {
      const sheet = h("div", { class: "pdf-page", role: "img", "aria-label": `Page ${n}` });
      sheet.page = n;
      this.element.append(sheet);
    }
    if (count < this.doc.numPages) this.element.append(h("p", { class: "quiet" }, `Only the first ${count} pages are shown. Download the file to see all.`));
    this.#measure();
    for (const sheet of this.element.querySelectorAll(".pdf-page")) this.seen.observe(sheet);
  }

  #measure() {
    for (const sheet of this.element.querySelectorAll(".pdf-page")) {
      const size = sheet.size ?? this.size;
      sheet.style.aspectRatio = `${size.width} / ${size.height}`;
      sheet.style.setProperty("--zoom", this.#zoom);
    }
  }

  #step(by) {
    const at = steps.findLastIndex((s) => s <= this.#zoom + 0.01);
    this.#zoom = steps[Math.max(0, Math.min(steps.length - 1, at + by))];
    this.level.textContent = `${Math.round(this.#zoom * 100)} %`;
    this.#measure();
    for (const sheet of [...this.#drawn.keys()]) {
      this.#drop(sheet);
      this.#draw(sheet);
    }
  }

  async #draw(sheet) {
    if (this.#drawn.has(sheet)) return;
    this.#drawn.set(sheet, null);
    const page = await this.doc.getPage(sheet.page);
    if (!this.#drawn.has(sheet)) return;
    sheet.size = page.getViewport({ scale: 1 });
    sheet.style.aspectRatio = `${sheet.size.width} / ${sheet.size.height}`;
    let scale = (sheet.clientWidth / sheet.size.width) * devicePixelRatio;
    scale = Math.min(scale, Math.sqrt(sharpest / (sheet.size.width * sheet.size.height)));
    const viewport = page.getViewport({ scale });
    const canvas = h("canvas", { width: Math.floor(viewport.width), height: Math.floor(viewport.height) });
    const task = page.render({ canvas, viewport });
    this.#drawn.set(sheet, task);
    await task.promise.then(() => sheet.replaceChildren(canvas), () => {}); // left empty when scrolled away or broken
  }

  #drop(sheet) {
    this.#drawn.get(sheet)?.cancel();
    this.#drawn.delete(sheet);
    sheet.replaceChildren();
  }

  end(loading) {
    this.seen.disconnect();
    loading.destroy();
  }
}
