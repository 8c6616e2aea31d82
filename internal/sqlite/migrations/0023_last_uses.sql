-- When sandboxes were used last; one that never was has no row. Of those from before, that is not known: they count as used.
CREATE TABLE last_uses (
	sandbox TEXT PRIMARY KEY REFERENCES sandboxes (id) ON DELETE CASCADE,
	at      INTEGER NOT NULL
) STRICT;
INSERT INTO last_uses SELECT id, changed FROM sandboxes WHERE pooled = 0;
