-- How a person has arranged a part of the dashboard, as JSON that only the dashboard reads.
CREATE TABLE preferences (
  user  TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  name  TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (user, name)
) STRICT, WITHOUT ROWID;

-- What the people of a sandbox call its terminals.
CREATE TABLE terminal_names (
  sandbox TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
  tab     TEXT NOT NULL,
  name    TEXT NOT NULL,
  PRIMARY KEY (sandbox, tab)
) STRICT, WITHOUT ROWID;
