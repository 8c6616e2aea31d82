CREATE TABLE users (
  id       TEXT PRIMARY KEY,
  name     TEXT NOT NULL UNIQUE,
  role     TEXT NOT NULL CHECK (role IN ('admin', 'member')),
  password TEXT NOT NULL, -- argon2id, '' for the unclaimed admin
  disabled INTEGER NOT NULL CHECK (disabled IN (0, 1)),
  created  INTEGER NOT NULL
) STRICT;

-- key is the SHA-256 of the secret. A session with a host hangs on the dashboard session that is its parent.
CREATE TABLE sessions (
  id      TEXT PRIMARY KEY,
  key     BLOB NOT NULL UNIQUE CHECK (length(key) = 32),
  user    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  parent  TEXT REFERENCES sessions (id) ON DELETE CASCADE,
  host    TEXT NOT NULL,
  origin  TEXT NOT NULL, -- the address it was opened from
  created INTEGER NOT NULL,
  seen    INTEGER NOT NULL,
  expires INTEGER NOT NULL
) STRICT;

CREATE INDEX sessions_of_user ON sessions (user, created DESC);
CREATE INDEX sessions_of_parent ON sessions (parent);
CREATE INDEX sessions_by_end ON sessions (expires);

CREATE TABLE tokens (
  id      TEXT PRIMARY KEY,
  key     BLOB NOT NULL UNIQUE CHECK (length(key) = 32),
  user    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name    TEXT NOT NULL,
  sandbox TEXT NOT NULL,
  prefix  TEXT NOT NULL,
  created INTEGER NOT NULL,
  used    INTEGER, -- NULL: never
  expires INTEGER  -- NULL: never
) STRICT;

CREATE INDEX tokens_of_user ON tokens (user, created DESC);
