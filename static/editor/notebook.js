// Renders notebooks: cells with their text, code and saved outputs. Nothing is executed.
import { h } from "../js/dom.js";
import { plainText } from "../terminal/sequences.js";
import { clean, frame } from "./frame.js";
import { budget, embedImages, fragmentOf, disableLinks } from "./markdown.js";

const mostCells = 2000;
const mostText = 200_000; // characters per output
const pictures = ["image/png", "image/jpeg", "image/gif", "image/webp"];

const joined = (value) => (Array.isArray(value) ? value.join("") : typeof value === "string" ? value : "");

// cellsOf parses a notebook, version 3 or 4, or throws.
export function cellsOf(text) {
  const book = JSON.parse(text);
  const cells = book.cells ?? book.worksheets?.[0]?.cells;
  if (!Array.isArray(cells)) throw new Error("This is not a notebook.");
  return cells.slice(0, mostCells).map((c) => ({
    kind: c.cell_type === "code" ? "code" : c.cell_type === "markdown" ? "prose" : "raw",
    source: joined(c.source ?? c.input),
    count: Number.isInteger(c.execution_count) ? c.execution_count : null,
    outputs: Array.isArray(c.outputs) ? c.outputs.map(outputOf).filter(Boolean) : [],
    attached: attachedOf(c.attachments),
  }));
}

// outputOf picks the best form of an output: {picture}, {html}, {markdown}, {text} or {error}.
function outputOf(o) {
  if (o?.output_type === "error" || o?.output_type === "pyerr") return { error: plain(joined(o.traceback) || `${o.ename}: ${o.evalue}`) };
  if (o?.output_type === "stream") return { text: plain(joined(o.text)) };
  const data = o?.data ?? {};
  for (const kind of pictures) {
    const body = joined(data[kind]).replace(/\s/g, "");
    if (/^[a-z0-9+/=]+$/i.test(body)) return { picture: `data:${kind};base64,${body}` };
  }
  if (data["text/html"]) return { html: joined(data["text/html"]) };
  if (data["text/markdown"]) return { markdown: joined(data["text/markdown"]) };
  const text = joined(data["text/plain"]);
  return text ? { text: plain(text) } : null;
}

function plain(text) {
  const shown = plainText(text);
  return shown.length > mostText ? `${shown.slice(0, mostText)}\n…` : shown;
}

function attachedOf(attachments) {
  const out = {};
  for (const [name, forms] of Object.entries(attachments ?? {})) {
    const kind = pictures.find((k) => typeof forms?.[k] === "string");
    if (kind) out[name] = `data:${kind};base64,${forms[kind]}`;
  }
  return out;
}

// show renders a notebook: {element, links}.
export async function show(text, { files, path, title }) {
  const fragment = document.createDocumentFragment();
  const links = [];
  const left = budget(); // of all cells
  const prose = async (markdown, attached) => {
    const part = fragmentOf(markdown);
    links.push(...disableLinks(part));
    await embedImages(part, { files, path, left, attached });
    return part;
  };
  for (const cell of cellsOf(text)) {
    if (cell.kind === "prose") fragment.append(h("div", { class: "cell" }, h("div", { class: "prose" }, await prose(cell.source, cell.attached))));
    else fragment.append(await codeCell(cell, prose, links));
  }
  return { element: frame(fragment, { title, className: "notebook" }), links };
}

async function codeCell(cell, prose, links) {
  const element = h("div", { class: "cell" }, h("div", { class: "count" }, cell.kind === "code" ? `[${cell.count ?? " "}]` : ""), h("pre", {}, h("code", {}, cell.source)));
  for (const output of cell.outputs) {
    const inside = output.picture ? h("img", { src: output.picture, alt: "Output" }) : output.markdown ? await prose(output.markdown)
      : output.html ? tidy(clean(output.html), links) : h("pre", { class: output.error ? "error" : "" }, output.error ?? output.text);
    element.append(h("div", { class: "output" }, inside));
  }
  return element;
}

// tidy disables links and removes images that would be loaded.
function tidy(fragment, links) {
  links.push(...disableLinks(fragment));
  for (const img of fragment.querySelectorAll("img")) if (!/^data:image\/(png|jpeg|gif|webp);base64,/i.test(img.getAttribute("src") ?? "")) img.remove();
  return fragment;
}
