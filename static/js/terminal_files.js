// What the workspace's terminals need of their sandbox's files, for path links and pasted files.
import { Files } from "../files/api.js";
import { encodePath } from "../files/paths.js";

const folderMaxAge = 2000; // ms
const pasteFolder = "pasted"; // in the home

// filesOf takes the files' address from the element of the panes; it returns undefined when the page has no files. folder()
// resolves to the working directory of the visible terminal. awake() says whether the sandbox is running: looking up a path
// must not wake it.
export function filesOf(panes, folder, awake) {
  const { filesBase: base, filesHome: home, filesBox: box } = panes?.dataset ?? {};
  if (!base) return undefined;
  const files = new Files(base, encodePath(home), box);
  let last = { at: 0, path: "" };
  return {
    home,
    find: async (path) => (awake() ? files.find(encodePath(path)) : null),
    folder: async () => {
      if (Date.now() - last.at > folderMaxAge) last = { at: Date.now(), path: await folder().catch(() => "") };
      return last.path;
    },
    open: ({ path, line, column, type }) => {
      const kind = type === "folder" ? "sandboxd:reveal" : "sandboxd:open";
      document.dispatchEvent(new CustomEvent(kind, { detail: { path, line: line || undefined, column: column || undefined } }));
    },
    put: async (name, file, signal) => {
      const path = `${home}/${pasteFolder}/${name}`;
      await files.write(encodePath(path), file, { fresh: true, parents: true, signal, limit: 0 });
      return path;
    },
  };
}
