-- The image of its template that a sandbox made from a snapshot comes from; '' when that is not known.
ALTER TABLE sandboxes ADD COLUMN base TEXT NOT NULL DEFAULT '';

-- Updates of sandboxes to newer images: of one, or of all of a template. items is JSON.
CREATE TABLE updates (
  number       INTEGER PRIMARY KEY, -- in the order in which they began
  id           TEXT NOT NULL UNIQUE,
  template     TEXT NOT NULL,
  sandbox      TEXT NOT NULL, -- id of the only one; '' for all of the template
  asker        TEXT NOT NULL, -- user id, who may be gone by now
  force        INTEGER NOT NULL CHECK (force IN (0, 1)),
  max_failures INTEGER NOT NULL,
  state        TEXT NOT NULL,
  image        TEXT NOT NULL,
  problem      TEXT NOT NULL,
  began        INTEGER NOT NULL,
  ended        INTEGER, -- NULL while it is under way
  items        TEXT NOT NULL
) STRICT;

CREATE INDEX updates_of ON updates (template, sandbox, number);
