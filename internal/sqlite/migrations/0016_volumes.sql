-- Folders that several sandboxes have. templates and sandboxes are JSON arrays, of names and of ids. A deleted one keeps its row until its
-- content is removed; another one may have its name by then.
CREATE TABLE volumes (
  id        TEXT PRIMARY KEY,
  name      TEXT NOT NULL,
  note      TEXT NOT NULL,
  mode      TEXT NOT NULL,
  everyone  INTEGER NOT NULL,
  templates TEXT NOT NULL,
  sandboxes TEXT NOT NULL,
  created   INTEGER NOT NULL,
  deleting  INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX volumes_name ON volumes (name) WHERE deleting = 0;
