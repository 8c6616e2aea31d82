// Previews by kind, loaded on first use. A preview is {element, note, tools, links, shown(), end()}.
import { button, h } from "../js/dom.js";
import { size } from "../files/format.js";
import { picture, player } from "./media.js";
import { hex } from "./text.js";

const longest = 2 << 20; // characters to render
const peeked = 4096; // bytes of a binary file to show

// preview renders a file. of: {title, files, path, tag, text, failed()}.
export async function preview(kind, of) {
  const { files, path, tag, text, title } = of;
  if (text !== undefined && kind !== "table" && kind !== "svg" && text.length > longest) throw new Error("It is too long to render. You can view the source.");
  const address = (params = {}) => files.url(path, { ...params, v: tag });
  switch (kind) {
    case "image":
    case "svg":
      return picture(address({ preview: "image" }), of);
    case "audio":
    case "video":
      return player(kind, address(), of);
    case "markdown":
      return (await import("./markdown.js")).show(text, of);
    case "notebook":
      return (await import("./notebook.js")).show(text, of);
    case "table":
      return (await import("./table.js")).show(text, { tabs: /\.tsv$/i.test(title), title });
    case "pdf":
      return (await import("./pdf.js")).show(new URL(address(), location.href).href, of);
  }
  throw new Error("There is no preview for this kind of file.");
}

// peek shows the first bytes of a binary file.
export function peek(bytes, { size: total, download }) {
  const rows = hex(bytes.subarray(0, peeked));
  const table = h("pre", { class: "hex", tabindex: "0", "aria-label": "First bytes" }, rows.map((r) => [h("span", { class: "hex-at" }, r.offset), `  ${r.bytes}  `, h("span", { class: "hex-text" }, r.text), "\n"]));
  return {
    element: h("div", { class: "hex-view" }, h("div", { class: "hex-head" }, h("p", {}, `This is a binary file (${size(total)}).${total > peeked ? ` Its first ${size(peeked)}:` : ""}`), button("download", "Download", download, { text: "Download", kind: "low" })), table),
  };
}
