-- Schedules of backups, and their newest runs. A time that is NULL is for none; items is JSON.
CREATE TABLE schedules (
  id             TEXT PRIMARY KEY,
  owner          TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name           TEXT NOT NULL,
  cron           TEXT NOT NULL,
  zone           TEXT NOT NULL,
  target         TEXT NOT NULL,
  sandbox        TEXT NOT NULL, -- id; '' for none
  template       TEXT NOT NULL, -- '' for none
  repository     TEXT NOT NULL, -- '' for the backup folder
  keep_last      INTEGER NOT NULL,
  keep_daily     INTEGER NOT NULL,
  keep_weekly    INTEGER NOT NULL,
  keep_monthly   INTEGER NOT NULL,
  test_cron      TEXT NOT NULL, -- '' for never
  enabled        INTEGER NOT NULL CHECK (enabled IN (0, 1)),
  created        INTEGER NOT NULL,
  changed        INTEGER NOT NULL,
  next           INTEGER,
  next_test      INTEGER
) STRICT;

CREATE INDEX schedules_of_owner ON schedules (owner);

CREATE TABLE schedule_runs (
  number   INTEGER PRIMARY KEY, -- in the order in which they began
  id       TEXT NOT NULL UNIQUE,
  schedule TEXT NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
  work     TEXT NOT NULL,
  state    TEXT NOT NULL,
  due      INTEGER, -- NULL for one that a person started
  missed   INTEGER NOT NULL,
  began    INTEGER NOT NULL,
  ended    INTEGER,
  problem  TEXT NOT NULL,
  items    TEXT NOT NULL
) STRICT;

CREATE INDEX schedule_runs_of ON schedule_runs (schedule, number);

-- Backups that were made for a schedule, and that none covers any more since a time.
CREATE TABLE schedule_unkept (
  backup TEXT PRIMARY KEY,
  since  INTEGER NOT NULL
) STRICT;
