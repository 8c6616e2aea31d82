-- Snapshots of sandboxes, also of some that are being deleted: sandboxd deletes those itself, after what the engine has of them. stats and
-- origin are JSON; took is nanoseconds. A parent may be of another sandbox.
CREATE TABLE snapshots (
  id      TEXT PRIMARY KEY,
  sandbox TEXT NOT NULL,
  owner   TEXT NOT NULL,
  name    TEXT NOT NULL,
  note    TEXT NOT NULL,
  parent  TEXT NOT NULL, -- '' for none
  kind    TEXT NOT NULL,
  created INTEGER NOT NULL,
  state   TEXT NOT NULL,
  problem TEXT NOT NULL,
  stats   TEXT NOT NULL,
  still   INTEGER NOT NULL CHECK (still IN (0, 1)),
  took    INTEGER NOT NULL,
  image   TEXT NOT NULL,
  origin  TEXT NOT NULL -- with the environment, which may hold secrets
) STRICT;

CREATE INDEX snapshots_of_parent ON snapshots (parent);

-- The snapshot that a sandbox is based on, and the one that its last restore took before.
CREATE TABLE snapshot_heads (
  sandbox  TEXT PRIMARY KEY,
  snapshot TEXT NOT NULL, -- '' for none
  undo     TEXT NOT NULL  -- '' for none
) STRICT;

CREATE INDEX snapshot_heads_at ON snapshot_heads (snapshot);
