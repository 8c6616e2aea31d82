-- What a sandbox showed last, as JSON: the end of its first terminal and the names in its home.
CREATE TABLE last_views (
	sandbox TEXT PRIMARY KEY REFERENCES sandboxes (id) ON DELETE CASCADE,
	view    TEXT NOT NULL
) STRICT;
