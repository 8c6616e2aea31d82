// Turns dropped or chosen files into [{file, path}], where path is where the file goes.
import { h } from "../js/dom.js";
import { encodeName, join } from "./paths.js";

// fromDrop reads a drop, with folders and all they contain. The items must be read during the event; reading the folders
// takes longer.
export function fromDrop(transfer) {
  const items = [...transfer.items].filter((i) => i.kind === "file");
  const dropped = items.map((i) => {
    const entry = i.webkitGetAsEntry?.();
    return entry?.isDirectory ? entry : i.getAsFile();
  });
  return async (folder) => {
    const out = [];
    for (const d of dropped.filter(Boolean)) {
      if (d instanceof File) out.push({ file: d, path: join(folder, encodeName(d.name)) });
      else await walk(d, folder, out);
    }
    return out;
  };
}

async function walk(entry, folder, out) {
  const path = join(folder, encodeName(entry.name));
  if (entry.isFile) {
    out.push({ file: await new Promise((ok, no) => entry.file(ok, no)), path });
    return;
  }
  const before = out.length;
  const reader = entry.createReader();
  for (;;) {
    const batch = await new Promise((ok, no) => reader.readEntries(ok, no));
    if (!batch.length) break;
    for (const child of batch) await walk(child, path, out);
  }
  if (out.length === before) out.push({ path }); // an empty folder
}

// fromInput reads a file input. When a folder was chosen, files have relative paths.
export function fromInput(list, folder) {
  return [...list].map((file) => {
    const names = (file.webkitRelativePath || file.name).split("/").map(encodeName);
    return { file, path: join(folder, names.join("/")) };
  });
}

// choose opens the browser's file dialog and resolves to the files.
export function choose({ folder = false, many = true } = {}) {
  return new Promise((resolve) => {
    const done = (files) => {
      resolve(files);
      input.remove();
    };
    const input = h("input", { type: "file", multiple: many, webkitdirectory: folder, hidden: true, change: () => done(input.files), cancel: () => done([]) });
    document.body.append(input);
    input.click();
  });
}
