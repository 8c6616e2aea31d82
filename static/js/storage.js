// JSON in a Storage, which may be missing, full or blocked: what cannot be stored is only a lost convenience.

export function readJSON(store, key, otherwise = {}) {
  try {
    return JSON.parse(store.getItem(key)) ?? otherwise;
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
