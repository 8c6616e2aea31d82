// Paths as the page holds them: absolute, every name percent-encoded the same way. So a name that is no text keeps its
// very bytes, a path is safe in an address, and two spellings of one path are the same string.

const decoder = new TextDecoder("utf-8", { fatal: true });
const lenient = new TextDecoder("utf-8");
const plain = /^[A-Za-z0-9_.!~*'()-]$/;

// encodeName encodes one name that is text.
export function encodeName(name) {
  return encodeURIComponent(name.toWellFormed());
}

// bytesOf gives the bytes that an encoded name or path stands for.
export function bytesOf(encoded) {
  const out = [];
  for (let i = 0; i < encoded.length; i++) {
    const hex = encoded[i] === "%" ? encoded.slice(i + 1, i + 3) : "";
    if (/^[0-9a-f]{2}$/i.test(hex)) {
      out.push(parseInt(hex, 16));
      i += 2;
    } else out.push(...new TextEncoder().encode(encoded[i]));
  }
  return Uint8Array.from(out);
}

// encodeBytes encodes any bytes, the way that encodeName does it where they are text. Slashes stay.
export function encodeBytes(bytes) {
  let out = "";
  for (const b of bytes) {
    const c = String.fromCharCode(b);
    out += plain.test(c) || c === "/" ? c : `%${b.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return out;
}

// canonical brings another's percent-encoding into ours.
export function canonical(encoded) {
  return encodeBytes(bytesOf(encoded));
}

// nameOf gives an entry's name as it stands in a path. Entries whose name is no text bring their bytes along.
export function nameOf(entry) {
  return entry.name_encoded ? canonical(entry.name_encoded) : encodeName(entry.name);
}

// encodePath takes a path that is text. "" and "." are dropped, ".." goes up, "~" is home.
export function encodePath(path, home = "/") {
  if (path === "~" || path.startsWith("~/")) path = decodeText(home) + path.slice(1);
  if (!path.startsWith("/")) path = `${decodeText(home)}/${path}`;
  const names = [];
  for (const name of path.split("/")) {
    if (name === "..") names.pop();
    else if (name && name !== ".") names.push(encodeName(name));
  }
  return `/${names.join("/")}`;
}

export function join(folder, name) {
  return folder === "/" ? `/${name}` : `${folder}/${name}`;
}

export function parentOf(path) {
  return path.slice(0, Math.max(path.lastIndexOf("/"), 0)) || "/";
}

export function baseOf(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

// within says whether path is folder or something below it.
export function within(path, folder) {
  return path === folder || folder === "/" || path.startsWith(`${folder}/`);
}

// relative gives path as seen from folder, or null when it is not below.
export function relative(path, folder) {
  if (path === folder || !within(path, folder)) return null;
  return path.slice(folder === "/" ? 1 : folder.length + 1);
}

// isText says whether an encoded path is text throughout.
export function isText(encoded) {
  try {
    decoder.decode(bytesOf(encoded));
    return true;
  } catch {
    return false;
  }
}

// decodeText gives the text of an encoded path; what is no text in it becomes U+FFFD.
export function decodeText(encoded) {
  return lenient.decode(bytesOf(encoded));
}

// tidy is a path for people: home is "~".
export function tidy(path, home) {
  const text = decodeText(path);
  const from = decodeText(home);
  if (text === from) return "~";
  return from !== "/" && text.startsWith(`${from}/`) ? `~${text.slice(from.length)}` : text;
}

// topmost drops the paths that lie below another one of them: what is done to a folder is done to what is in it.
export function topmost(paths) {
  const kept = [];
  for (const path of [...new Set(paths)].sort()) {
    if (!kept.some((k) => within(path, k))) kept.push(path);
  }
  return kept;
}

// freeName gives a name beside those taken: "a.txt" becomes "a (2).txt".
export function freeName(name, taken) {
  if (!taken.has(name)) return name;
  const dot = name.lastIndexOf(".");
  const [stem, ext] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
  for (let n = 2; ; n++) {
    const candidate = `${stem}%20(${n})${ext}`;
    if (!taken.has(candidate)) return candidate;
  }
}

// nameFault says what is wrong with a name that somebody has typed, or "".
export function nameFault(name) {
  if (!name.trim()) return "It needs a name.";
  if (name === "." || name === "..") return "This name is taken by the folder itself.";
  if (name.includes("\0")) return "A name cannot hold a zero byte.";
  if (new TextEncoder().encode(name).length > 255) return "The name is too long: 255 bytes at most.";
  return "";
}
