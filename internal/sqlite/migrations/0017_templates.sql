-- Where templates are fetched from. secret is sealed with the key file of the data folder, NULL for none. A time that is NULL is for never.
CREATE TABLE template_sources (
  template  TEXT PRIMARY KEY,
  url       TEXT NOT NULL,
  ref       TEXT NOT NULL, -- '' for the default branch
  path      TEXT NOT NULL, -- '' for the whole repository
  secret    BLOB,
  host_keys TEXT NOT NULL,
  commit_id TEXT NOT NULL,
  dated     INTEGER,
  fetched   INTEGER,
  tried     INTEGER,
  problem   TEXT NOT NULL
) STRICT;

-- When templates are rebuilt by themselves.
CREATE TABLE template_plans (
  template TEXT PRIMARY KEY,
  cron     TEXT NOT NULL,
  zone     TEXT NOT NULL,
  no_cache INTEGER NOT NULL CHECK (no_cache IN (0, 1)),
  next     INTEGER NOT NULL
) STRICT;

-- The newest builds of templates' images.
CREATE TABLE template_builds (
  number    INTEGER PRIMARY KEY AUTOINCREMENT,
  template  TEXT NOT NULL,
  image     TEXT NOT NULL, -- '' when it did not come to that
  commit_id TEXT NOT NULL,
  why       TEXT NOT NULL,
  asked_by  TEXT NOT NULL, -- name of a user or a template
  state     TEXT NOT NULL,
  problem   TEXT NOT NULL,
  began     INTEGER NOT NULL,
  ended     INTEGER, -- NULL while it runs
  log       TEXT NOT NULL
) STRICT;

CREATE INDEX template_builds_of ON template_builds (template, number);
