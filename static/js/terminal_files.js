// What a terminal of the workspace asks of its sandbox: its files, for paths that are links and files that are pasted, and
// what has scrolled away.
const folderFreshFor = 2000; // ms
const pasted = "pasted"; // folder in the home

// historyOf gives the scrollback as text, "" where the sandbox keeps none.
export async function historyOf(url) {
  const answer = await fetch(url);
  return answer.ok && !answer.redirected ? answer.text() : "";
}

// filesOf reads where the files are from the panes' own element; undefined when the page has no files. folder gives where
// the shown terminal's program stands; awake says whether the sandbox runs, because looking for a path wakes nothing.
export function filesOf(panes, folder, awake) {
  const { filesBase: base, filesHome: home } = panes?.dataset ?? {};
  if (!base) return undefined;
  let last = { at: 0, path: "" };
  return {
    home,
    find: async (path) => (awake() ? find(base, path) : null),
    folder: async () => {
      if (Date.now() - last.at > folderFreshFor) last = { at: Date.now(), path: await folder().catch(() => "") };
      return last.path;
    },
    open: ({ path, line, column, type }) => {
      const kind = type === "folder" ? "sandboxd:reveal" : "sandboxd:open";
      document.dispatchEvent(new CustomEvent(kind, { detail: { path, line: line || undefined, column: column || undefined } }));
    },
    put: (name, file, signal) => put(base, home, name, file, signal),
  };
}

// find looks whether there is a file of that path, without counting as use of the sandbox: a mouse that rests on a terminal
// must not keep it awake.
async function find(base, path) {
  const answer = await fetch(`${base}?${new URLSearchParams({ path, stat: "true", refresh: "true" })}`);
  return answer.ok && !answer.redirected ? answer.json() : null;
}

async function put(base, home, name, file, signal) {
  const path = `${home}/${pasted}/${name}`;
  const answer = await fetch(`${base}?${new URLSearchParams({ path, parents: "true" })}`, {
    method: "PUT", body: file, signal, headers: { "Content-Type": "application/octet-stream", "If-None-Match": "*" },
  });
  if (answer.ok && !answer.redirected) return path;
  const problem = await answer.json().catch(() => null);
  throw new Error(problem?.detail ?? `sandboxd answered ${answer.status}.`);
}
