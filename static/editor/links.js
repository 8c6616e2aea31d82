// The targets of links in documents.
import { encodePath, parentOf } from "../files/paths.js";

// linkOf returns the target of a link in a file: {url}, {path}, or null.
export function linkOf(href, from) {
  if (/^(https?|mailto):/i.test(href)) {
    try {
      return { url: new URL(href).href };
    } catch {
      return null;
    }
  }
  if (/^[a-z][a-z0-9+.-]*:/i.test(href) || href.startsWith("//")) return null;
  const path = href.split(/[?#]/)[0];
  return path ? { path: pathFrom(path, from) } : null;
}

function pathFrom(href, from) {
  let text = href;
  try {
    text = decodeURIComponent(href);
  } catch {
    // not encoded
  }
  return text.startsWith("/") ? encodePath(text) : encodePath(text, parentOf(from));
}
