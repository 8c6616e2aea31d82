// Renders Markdown. Links are listed beside the frame instead; images in the sandbox are embedded as data, and others are
// not loaded.
import { Marked } from "marked";
import { h } from "../js/dom.js";
import { clean, frame } from "./frame.js";
import { linkOf } from "./links.js";

const pictures = { most: 40, size: 4 << 20, total: 24 << 20 }; // per document
const raster = /^data:image\/(png|jpeg|gif|webp|avif);base64,[a-z0-9+/=\s]+$/i;
const mostLinks = 200;
const mostSlug = 200; // characters of a heading used for its id

const marked = new Marked({
  gfm: true,
  renderer: {
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
    heading({ tokens, depth, text }) {
      return `<h${depth} id="${slug(text)}">${this.parser.parseInline(tokens)}</h${depth}>\n`;
    },
  },
});

// slug returns the id of a heading, for links within the document.
export function slug(text) {
  return text.slice(0, mostSlug).toLowerCase().replace(/<[^<>]*>/g, "").replace(/[^\p{L}\p{N}\s_-]/gu, "").trim().replace(/\s+/g, "-");
}

// fragmentOf renders Markdown to sanitized elements.
export function fragmentOf(text) {
  return clean(marked.parse(text));
}

// disableLinks disables the links of a fragment and returns them: [{text, href}].
export function disableLinks(fragment) {
  const links = [];
  for (const a of fragment.querySelectorAll("a[href]")) {
    const href = a.getAttribute("href");
    if (href.startsWith("#")) {
      a.setAttribute("href", `#user-content-${href.slice(1)}`); // the prefix that DOMPurify gives ids
      continue;
    }
    a.removeAttribute("href");
    a.title = href;
    a.className = "link";
    if (links.length < mostLinks) links.push({ text: a.textContent.trim() || href, href });
  }
  return links;
}

// budget is the limit for the images of one document.
export function budget() {
  return { count: pictures.most, room: pictures.total };
}

// embedImages embeds images from the sandbox and replaces others by text. left is the rest of the document's budget.
// attached are embedded images: name → data URL.
export async function embedImages(fragment, { files, path: from, left, attached = {} }) {
  for (const img of fragment.querySelectorAll("img")) {
    const src = img.getAttribute("src") ?? "";
    img.removeAttribute("src");
    const inside = src.startsWith("attachment:") ? attached[src.slice(11)] : src;
    if (raster.test(inside ?? "")) {
      img.setAttribute("src", inside);
      continue;
    }
    const to = linkOf(src, from);
    const data = to?.path && --left.count >= 0 && left.room > 0 ? await picture(files, to.path, Math.min(pictures.size, left.room)) : "";
    left.room -= data.length;
    if (data) img.setAttribute("src", data);
    else img.replaceWith(absent(img.alt, to?.url));
  }
}

function absent(alt, url) {
  return h("span", { class: "absent" }, `${alt || "Picture"} (${url ? `not loaded from ${new URL(url).host}` : "not found"})`);
}

async function picture(files, path, most) {
  try {
    const answer = await files.ask(files.url(path, { preview: "image" }));
    const kind = answer.headers.get("Content-Type") ?? "";
    if (!kind.startsWith("image/") || Number(answer.headers.get("Content-Length") ?? 0) > most) return "";
    const blob = await answer.blob();
    if (blob.size > most) return "";
    return await new Promise((resolve) => {
      const reader = new FileReader();
      reader.onload = () => resolve(reader.result);
      reader.onerror = () => resolve("");
      reader.readAsDataURL(blob);
    });
  } catch {
    return "";
  }
}

// show renders a document: {element, links}.
export async function show(text, { files, path, title }) {
  const fragment = fragmentOf(text);
  const links = disableLinks(fragment);
  await embedImages(fragment, { files, path, left: budget() });
  return { element: frame(fragment, { title }), links };
}

