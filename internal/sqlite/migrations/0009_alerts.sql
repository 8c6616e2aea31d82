-- What is watched. An owner that is NULL is the installation. Durations are nanoseconds; channels is a JSON list of ids.
CREATE TABLE alert_rules (
  id        TEXT PRIMARY KEY,
  owner     TEXT REFERENCES users (id) ON DELETE CASCADE,
  position  INTEGER NOT NULL,
  name      TEXT NOT NULL,
  kind      TEXT NOT NULL,
  sandbox   TEXT NOT NULL,
  template  TEXT NOT NULL,
  threshold REAL NOT NULL,
  pattern   TEXT NOT NULL,
  lasts     INTEGER NOT NULL,
  remind    INTEGER NOT NULL,
  disabled  INTEGER NOT NULL CHECK (disabled IN (0, 1)),
  muted     INTEGER, -- NULL: not
  channels  TEXT NOT NULL
) STRICT;

CREATE INDEX alert_rules_of_owner ON alert_rules (owner, position);

-- It has a row once the installation was given its first rules.
CREATE TABLE alert_rules_begun (at INTEGER PRIMARY KEY) STRICT;

-- Where messages go. The address of a chat service is a secret.
CREATE TABLE alert_channels (
  id      TEXT PRIMARY KEY,
  owner   TEXT REFERENCES users (id) ON DELETE CASCADE,
  name    TEXT NOT NULL,
  kind    TEXT NOT NULL,
  address TEXT NOT NULL,
  secret  TEXT NOT NULL
) STRICT;

CREATE INDEX alert_channels_of_owner ON alert_channels (owner);

-- Alerts that fire or have fired. resolved is 9223372036854775807 while they fire, so that those come first.
CREATE TABLE alerts (
  id            TEXT PRIMARY KEY,
  rule          TEXT NOT NULL,
  rule_name     TEXT NOT NULL,
  owner         TEXT NOT NULL, -- of the rule
  kind          TEXT NOT NULL,
  sandbox_id    TEXT NOT NULL,
  sandbox       TEXT NOT NULL,
  sandbox_owner TEXT NOT NULL,
  template      TEXT NOT NULL,
  part          TEXT NOT NULL,
  text          TEXT NOT NULL,
  since         INTEGER NOT NULL,
  fired         INTEGER NOT NULL,
  resolved      INTEGER NOT NULL,
  reminded      INTEGER, -- NULL: never
  muted         INTEGER  -- NULL: not
) STRICT;

CREATE INDEX alerts_newest ON alerts (resolved DESC, fired DESC, id DESC);

-- Messages on their way, and what has become of them. next is NULL once that is known. message is JSON.
CREATE TABLE alert_deliveries (
  id       TEXT PRIMARY KEY,
  channel  TEXT NOT NULL REFERENCES alert_channels (id) ON DELETE CASCADE,
  message  TEXT NOT NULL,
  created  INTEGER NOT NULL,
  next     INTEGER,
  attempts INTEGER NOT NULL,
  sent     INTEGER, -- NULL: not
  given_up INTEGER NOT NULL CHECK (given_up IN (0, 1)),
  problem  TEXT NOT NULL
) STRICT;

CREATE INDEX alert_deliveries_of_channel ON alert_deliveries (channel, created DESC, id DESC);
CREATE INDEX alert_deliveries_due ON alert_deliveries (channel, next) WHERE next IS NOT NULL;
