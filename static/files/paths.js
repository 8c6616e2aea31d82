// Paths are absolute, with every name percent-encoded in one canonical way. So names that are not UTF-8 keep their bytes,
// paths are safe in URLs, and equal paths are equal strings.

const decoder = new TextDecoder("utf-8", { fatal: true });
const lenient = new TextDecoder("utf-8");
const plain = /^[A-Za-z0-9_.!~*'()-]$/;

// encodeName encodes a name that is text.
export function encodeName(name) {
  return encodeURIComponent(name.toWellFormed());
}

// bytesOf returns the bytes of an encoded name or path.
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

// encodeBytes encodes bytes as encodeName does with text. Slashes stay.
export function encodeBytes(bytes) {
  let out = "";
  for (const b of bytes) {
    const c = String.fromCharCode(b);
    out += plain.test(c) || c === "/" ? c : `%${b.toString(16).toUpperCase().padStart(2, "0")}`;
  }
  return out;
}

// canonical converts any percent-encoding to the canonical one.
export function canonical(encoded) {
  return encodeBytes(bytesOf(encoded));
}

// nameOf returns the encoded name of an entry. Names that are not text come as bytes.
export function nameOf(entry) {
  return entry.name_encoded ? canonical(entry.name_encoded) : encodeName(entry.name);
}

// encodePath encodes a path that is text. It resolves "", ".", ".." and "~".
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

// within says whether path is folder or below it.
export function within(path, folder) {
  return path === folder || folder === "/" || path.startsWith(`${folder}/`);
}

// relative returns path relative to folder, or null when it is not below.
export function relative(path, folder) {
  if (path === folder || !within(path, folder)) return null;
  return path.slice(folder === "/" ? 1 : folder.length + 1);
}

// isText says whether an encoded path is valid UTF-8.
export function isText(encoded) {
  try {
    decoder.decode(bytesOf(encoded));
    return true;
  } catch {
    return false;
  }
}

// decodeText decodes a path; invalid bytes become U+FFFD.
export function decodeText(encoded) {
  return lenient.decode(bytesOf(encoded));
}

// tidy returns a path for display, with "~" for the home unless that is shown whole.
export function tidy(path, home, whole) {
  const text = decodeText(path);
  if (whole) return text;
  const from = decodeText(home);
  if (text === from) return "~";
  return from !== "/" && text.startsWith(`${from}/`) ? `~${text.slice(from.length)}` : text;
}

// topmost drops paths below another one of the list: an action on a folder includes its contents.
export function topmost(paths) {
  const kept = [];
  for (const path of [...new Set(paths)].sort()) {
    if (!kept.some((k) => within(path, k))) kept.push(path);
  }
  return kept;
}

// freeName returns a name that is not taken: "a.txt" becomes "a (2).txt".
export function freeName(name, taken) {
  if (!taken.has(name)) return name;
  const dot = name.lastIndexOf(".");
  const [stem, ext] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
  for (let n = 2; ; n++) {
    const candidate = `${stem}%20(${n})${ext}`;
    if (!taken.has(candidate)) return candidate;
  }
}

// nameFault says what is wrong with a typed name, or "".
export function nameFault(name) {
  if (!name.trim()) return "Enter a name.";
  if (name === "." || name === "..") return "This name is reserved.";
  if (name.includes("\0")) return "A name cannot contain a zero byte.";
  if (new TextEncoder().encode(name).length > 255) return "The name is too long. The limit is 255 bytes.";
  return "";
}
