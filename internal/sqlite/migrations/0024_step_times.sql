-- How long a step of work took the last time on this host, such as one of the build of an image.
CREATE TABLE step_times (
	key  TEXT PRIMARY KEY,
	took INTEGER NOT NULL, -- milliseconds
	put  INTEGER NOT NULL
) STRICT;
