-- The gateway to models. An owner that is NULL is the server. models and targets are JSON; key is sealed with the key file of the data
-- folder, NULL for none.
CREATE TABLE gateway_providers (
  id       TEXT PRIMARY KEY,
  owner    TEXT REFERENCES users (id) ON DELETE CASCADE,
  name     TEXT NOT NULL,
  kind     TEXT NOT NULL,
  base_url TEXT NOT NULL,
  models   TEXT NOT NULL,
  key      BLOB,
  changed  INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX gateway_providers_of ON gateway_providers (ifnull(owner, ''), name);

CREATE TABLE gateway_aliases (
  id      INTEGER PRIMARY KEY,
  owner   TEXT REFERENCES users (id) ON DELETE CASCADE,
  name    TEXT NOT NULL,
  targets TEXT NOT NULL,
  changed INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX gateway_aliases_of ON gateway_aliases (ifnull(owner, ''), name);

-- A budget with neither user nor sandbox is for each one without a budget of its own. cost is in millionths of a dollar.
CREATE TABLE gateway_budgets (
  id       INTEGER PRIMARY KEY,
  scope    TEXT NOT NULL CHECK (scope IN ('user', 'sandbox')),
  user     TEXT REFERENCES users (id) ON DELETE CASCADE CHECK (user IS NULL OR scope = 'user'),
  sandbox  TEXT REFERENCES sandboxes (id) ON DELETE CASCADE CHECK (sandbox IS NULL OR scope = 'sandbox'),
  period   TEXT NOT NULL CHECK (period IN ('day', 'month')),
  requests INTEGER NOT NULL,
  tokens   INTEGER NOT NULL,
  cost     INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX gateway_budgets_of ON gateway_budgets (scope, coalesce(user, sandbox, ''), period);

CREATE TABLE gateway_settings (
  id          INTEGER PRIMARY KEY CHECK (id = 1),
  off         INTEGER NOT NULL CHECK (off IN (0, 1)),
  log_content INTEGER NOT NULL CHECK (log_content IN (0, 1))
) STRICT;

-- The log of calls. An id sorts by time; users and sandboxes may be deleted by now. Durations are nanoseconds.
CREATE TABLE gateway_calls (
  id          TEXT PRIMARY KEY,
  time        INTEGER NOT NULL,
  user        TEXT NOT NULL,
  sandbox     TEXT NOT NULL,
  label       TEXT NOT NULL,
  provider    TEXT NOT NULL,
  protocol    TEXT NOT NULL,
  asked       TEXT NOT NULL,
  model       TEXT NOT NULL,
  stream      INTEGER NOT NULL CHECK (stream IN (0, 1)),
  status      INTEGER NOT NULL,
  first_byte  INTEGER NOT NULL,
  took        INTEGER NOT NULL,
  input       INTEGER NOT NULL,
  output      INTEGER NOT NULL,
  cache_read  INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  cost        INTEGER NOT NULL,
  priced      INTEGER NOT NULL CHECK (priced IN (0, 1)),
  problem     TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX gateway_calls_by_time ON gateway_calls (time);
CREATE INDEX gateway_calls_by_user ON gateway_calls (user);
CREATE INDEX gateway_calls_by_sandbox ON gateway_calls (sandbox) WHERE sandbox <> '';
CREATE INDEX gateway_calls_by_label ON gateway_calls (label) WHERE label <> '';
CREATE INDEX gateway_calls_by_asked ON gateway_calls (asked) WHERE asked <> '';
CREATE INDEX gateway_calls_by_model ON gateway_calls (model) WHERE model <> '';
CREATE INDEX gateway_calls_failed ON gateway_calls (id) WHERE status >= 400;

-- What was asked and answered, packed with zstd. It is apart so that lists of calls do not read it.
CREATE TABLE gateway_contents (
  number  INTEGER PRIMARY KEY,
  call    TEXT NOT NULL REFERENCES gateway_calls (id) ON DELETE CASCADE,
  size    INTEGER NOT NULL, -- of both, as they are here
  request BLOB NOT NULL,
  answer  BLOB NOT NULL
) STRICT;

CREATE UNIQUE INDEX gateway_contents_of ON gateway_contents (call, size);

-- What was used in an hour. Names are those of the users and sandboxes then.
CREATE TABLE gateway_usage (
  hour        INTEGER NOT NULL,
  user        TEXT NOT NULL,
  sandbox     TEXT NOT NULL,
  provider    TEXT NOT NULL,
  model       TEXT NOT NULL,
  user_name   TEXT NOT NULL,
  label       TEXT NOT NULL,
  requests    INTEGER NOT NULL,
  failed      INTEGER NOT NULL,
  input       INTEGER NOT NULL,
  output      INTEGER NOT NULL,
  cache_read  INTEGER NOT NULL,
  cache_write INTEGER NOT NULL,
  cost        INTEGER NOT NULL,
  PRIMARY KEY (hour, user, sandbox, provider, model)
) STRICT, WITHOUT ROWID;

CREATE INDEX gateway_usage_of_user ON gateway_usage (user, hour);
CREATE INDEX gateway_usage_of_sandbox ON gateway_usage (sandbox, hour);
