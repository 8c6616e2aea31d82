-- Ports that are not private. A port of which there is no row is.
CREATE TABLE port_rules (
  sandbox    TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
  port       INTEGER NOT NULL CHECK (port BETWEEN 1 AND 65535),
  visibility TEXT NOT NULL CHECK (visibility IN ('shared', 'public')),
  PRIMARY KEY (sandbox, port)
) STRICT, WITHOUT ROWID;

-- Links to ports. hash is the SHA-256 of what stands for the link's secret.
CREATE TABLE shares (
  id      TEXT PRIMARY KEY,
  sandbox TEXT NOT NULL,
  port    INTEGER NOT NULL,
  hash    BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
  label   TEXT NOT NULL,
  owner   TEXT NOT NULL,
  created INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  FOREIGN KEY (sandbox, port) REFERENCES port_rules (sandbox, port) ON DELETE CASCADE
) STRICT;

CREATE INDEX shares_of_port ON shares (sandbox, port);
