-- Messages that were sent to several clones of a sandbox, and these clones.
CREATE TABLE trials (
	id       TEXT NOT NULL PRIMARY KEY,
	sandbox  TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
	name     TEXT NOT NULL,
	owner    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	body     TEXT NOT NULL,
	agent    TEXT NOT NULL,
	model    TEXT NOT NULL,
	mode     TEXT NOT NULL,
	state    TEXT NOT NULL,
	problem  TEXT NOT NULL,
	snapshot TEXT NOT NULL,
	kept     TEXT NOT NULL,
	created  INTEGER NOT NULL,
	clones   TEXT NOT NULL -- JSON
) STRICT;
CREATE INDEX trials_by_sandbox ON trials (sandbox);
CREATE INDEX trials_by_owner ON trials (owner);
