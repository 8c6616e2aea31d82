CREATE TABLE meta (
  key   TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- Times are microseconds since 1970. env is a JSON object, or '' for none: it may hold secrets.
-- search is name, label, template and image in lower case: SQLite folds ASCII only.
CREATE TABLE sandboxes (
  id       TEXT PRIMARY KEY,
  name     TEXT NOT NULL UNIQUE,
  label    TEXT NOT NULL,
  owner    TEXT NOT NULL,
  template TEXT NOT NULL,
  image    TEXT NOT NULL,
  cpus     REAL NOT NULL,
  memory   INTEGER NOT NULL,
  pids     INTEGER NOT NULL,
  env      TEXT NOT NULL,
  state    TEXT NOT NULL,
  problem  TEXT NOT NULL,
  created  INTEGER NOT NULL,
  changed  INTEGER NOT NULL,
  search   TEXT NOT NULL
) STRICT;

CREATE INDEX sandboxes_newest ON sandboxes (created DESC, name);
CREATE INDEX sandboxes_of_owner ON sandboxes (owner, created DESC, name);
