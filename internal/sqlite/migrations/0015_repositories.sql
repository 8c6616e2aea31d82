-- Places outside of the backup folder where backups can be. place is JSON without secrets; secrets and kept, the contents as they were last
-- seen, are sealed with the key file of the data folder.
CREATE TABLE repositories (
  name     TEXT PRIMARY KEY,
  identity TEXT NOT NULL, -- of the repository itself, wherever it is reached
  place    TEXT NOT NULL,
  secrets  BLOB NOT NULL,
  kept     BLOB, -- NULL: never seen
  created  INTEGER NOT NULL
) STRICT;
