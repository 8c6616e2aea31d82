-- When an unused sandbox is frozen and stopped, in nanoseconds: -1 is never, 0 leaves it to the template or the server.
ALTER TABLE sandboxes ADD COLUMN freeze_after INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN stop_after   INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN pooled       INTEGER NOT NULL DEFAULT 0 CHECK (pooled IN (0, 1));

CREATE INDEX sandboxes_up ON sandboxes (created DESC, name) WHERE state IN ('running', 'frozen');
CREATE INDEX sandboxes_pooled ON sandboxes (created DESC, name) WHERE pooled = 1;

-- The last deleted sandbox of each name.
CREATE TABLE graves (
  name    TEXT PRIMARY KEY,
  owner   TEXT NOT NULL,
  deleted INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX graves_by_age ON graves (deleted);

-- Why a sandbox is not to be put to rest before a time, in its user's words.
CREATE TABLE holds (
  id      TEXT PRIMARY KEY,
  sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
  owner   TEXT NOT NULL,
  reason  TEXT NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER NOT NULL
) STRICT;

CREATE INDEX holds_of_sandbox ON holds (sandbox);
