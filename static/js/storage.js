// JSON in a Storage, which may be missing, full or blocked. Losing the stored values must be harmless.

export function parseJSON(text, otherwise = {}) {
  try {
    return JSON.parse(text) ?? otherwise;
  } catch {
    return otherwise;
  }
}

export function readJSON(store, key, otherwise = {}) {
  try {
    return parseJSON(store.getItem(key), otherwise);
  } catch {
    return otherwise;
  }
}

// writeJSON stores a value; undefined removes it.
export function writeJSON(store, key, value) {
  try {
    if (value === undefined) store.removeItem(key);
    else store.setItem(key, JSON.stringify(value));
  } catch {
    // see above
  }
}
