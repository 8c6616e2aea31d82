// The kind of a file by its name, and its icon and preview. The content is only known when the file is opened.

const byExtension = new Map();
const add = (kind, list) => list.split(" ").forEach((ext) => byExtension.set(ext, kind));
add("image", "png jpg jpeg gif webp avif bmp ico");
add("svg", "svg");
add("markdown", "md markdown mdown mkd mdx");
add("notebook", "ipynb");
add("table", "csv tsv");
add("pdf", "pdf");
add("audio", "mp3 ogg oga opus wav flac m4a aac");
add("video", "mp4 webm mov m4v ogv mkv");
add("archive", "zip tar gz tgz zst bz2 xz 7z rar jar whl deb rpm");
add("page", "html htm xhtml");
add("data", "json jsonl yaml yml toml ini cfg conf env lock properties xml");
add("shell", "sh bash zsh fish ps1");
add("text", "txt log rst adoc tex diff patch");
add("code", "js mjs cjs jsx ts mts cts tsx py pyi go rs c h cc cpp cxx hpp java kt kts scala rb php pl pm lua r jl cs fs swift m mm dart ex exs erl hs clj sql css scss sass less vue svelte templ tmpl zig nim v proto graphql gql cmake gradle nix tf");
const byName = new Map([["dockerfile", "shell"], ["makefile", "shell"], ["justfile", "shell"], ["license", "text"], ["readme", "markdown"]]);

export function extensionOf(name) {
  const dot = name.lastIndexOf(".");
  return dot > 0 ? name.slice(dot + 1).toLowerCase() : "";
}

// kindOf returns "image", "svg", "markdown", "notebook", "table", "pdf", "audio", "video", "archive", "page", "data",
// "shell", "text", "code" or "".
export function kindOf(name) {
  return byExtension.get(extensionOf(name)) ?? byName.get(name.toLowerCase()) ?? "";
}

// sources are the kinds that can also be edited as text.
export const sources = new Set(["svg", "markdown", "notebook", "table"]);

// previews are the kinds that have a preview.
export const previews = new Set(["image", "svg", "markdown", "notebook", "table", "pdf", "audio", "video"]);

const icons = {
  image: "image", svg: "image", markdown: "markdown", notebook: "table", table: "table", pdf: "text", audio: "sound", video: "film",
  archive: "archive", page: "code", data: "braces", shell: "shell", text: "text", code: "code",
};
const tints = { image: 5, svg: 5, markdown: 2, notebook: 4, table: 3, pdf: 4, audio: 5, video: 5, archive: 6, page: 4, data: 6, shell: 3, code: 1 };

// iconOf returns an entry's icon and its tint, 0 for none.
export function iconOf(entry, open = false) {
  const type = entry.type === "link" ? entry.target_type : entry.type;
  if (type === "folder") return { icon: open ? "folder-open" : "folder", tint: 0, folder: true };
  if (entry.type === "link" && !type) return { icon: "broken", tint: 0 };
  if (type !== "file") return { icon: "special", tint: 0 };
  const kind = kindOf(entry.name);
  return { icon: icons[kind] ?? "file", tint: tints[kind] ?? 0 };
}
