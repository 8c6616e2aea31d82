// Finds paths in program output, such as src/app.js:12:3, "/var/log/x y.log", line 4, or main.go(7,2). It does not check
// that they exist. No DOM in here.
const mostInLine = 6;
const longest = 1000;

const quoted = /(["'`])([^"'`]+)\1(?:, line (\d+))?/gu;
const bare = /[^\s"'`<>|;,(){}[\]=]+/gu;
const behind = /^\((\d+)(?:,\s*(\d+))?\)/u;
const parts = /^([^:]+)(?::(\d+)(?::(\d+))?)?(?::.*)?$/u;

// findPaths returns possible paths as [{start, end, path, line, column}]; start and end are as in slice, line and column 0
// when not given.
export function findPaths(text) {
  const found = [];
  const taken = (at) => found.some((f) => at >= f.start && at < f.end);
  for (const m of text.matchAll(quoted)) {
    if (!plausible(m[2], Boolean(m[3]))) continue;
    found.push({ start: m.index + 1, end: m.index + 1 + m[2].length, path: m[2], line: Number(m[3] ?? 0), column: 0 });
  }
  for (const m of text.matchAll(bare)) {
    const one = taken(m.index) ? null : read(m[0], m.index, text.slice(m.index + m[0].length));
    if (one) found.push(one);
  }
  return found.sort((a, b) => a.start - b.start).slice(0, mostInLine);
}

function read(token, start, rest) {
  if (/^[\w+.-]+:\/\//u.test(token)) return null; // a URL
  const [, path, line, column] = parts.exec(token) ?? [];
  if (!path) return null;
  const place = line ? [line, column] : path === token ? (behind.exec(rest)?.slice(1) ?? []) : [];
  const clean = line ? path : path.replace(/[.!?]+$/u, "");
  if (!plausible(clean, place.length > 0)) return null;
  const end = line ? start + path.length + 1 + line.length + (column ? column.length + 1 : 0) : start + clean.length;
  return { start, end, path: clean, line: Number(place[0] ?? 0), column: Number(place[1] ?? 0) };
}

// plausible says whether a text is worth a lookup: it has a folder, an extension, or a line number beside it.
function plausible(path, placed) {
  if (path.length > longest || !/[\p{L}\p{N}]/u.test(path) || /\p{Cc}/u.test(path)) return false;
  if (path.includes("/")) return true;
  if (placed) return !/^[\d.]+$/u.test(path);
  return /[^.]\.[a-z][a-z0-9]{0,9}$/iu.test(path) && !/^[\d.]+[a-z]?$/iu.test(path);
}

// placesOf returns the absolute paths that a text may stand for, the most likely first. folder is the working directory.
export function placesOf(path, folder, home) {
  if (path.startsWith("/")) return [path];
  if (path.startsWith("~/")) return [`${home}/${path.slice(2)}`];
  const names = /^[ab]\//u.test(path) ? [path, path.slice(2)] : [path]; // as in git diffs
  const places = [folder, home].filter(Boolean).flatMap((base) => names.map((name) => join(base, name)));
  return [...new Set(places)];
}

function join(base, name) {
  const way = base.split("/").filter(Boolean);
  for (const step of name.split("/")) {
    if (step === "..") way.pop();
    else if (step !== "." && step !== "") way.push(step);
  }
  return `/${way.join("/")}`;
}
