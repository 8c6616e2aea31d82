-- Conversations of persons with agents, their items in order, and what waits in their queues.
CREATE TABLE conversations (
	id       TEXT NOT NULL PRIMARY KEY,
	sandbox  TEXT NOT NULL REFERENCES sandboxes (id) ON DELETE CASCADE,
	owner    TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	title    TEXT NOT NULL,
	agent    TEXT NOT NULL,
	model    TEXT NOT NULL,
	mode     TEXT NOT NULL,
	state    TEXT NOT NULL,
	since    INTEGER NOT NULL,
	problem  TEXT NOT NULL,
	held     INTEGER NOT NULL,
	rev      INTEGER NOT NULL,
	items    INTEGER NOT NULL,
	turn     INTEGER NOT NULL,
	used     TEXT NOT NULL,
	source   TEXT NOT NULL,
	queue    TEXT NOT NULL DEFAULT '[]',
	memory   BLOB,
	created  INTEGER NOT NULL,
	changed  INTEGER NOT NULL
);
CREATE INDEX conversations_by_sandbox ON conversations (sandbox, changed);
CREATE INDEX conversations_by_owner ON conversations (owner);
CREATE INDEX conversations_busy ON conversations (id) WHERE state IN ('working', 'asking') OR queue <> '[]';

CREATE TABLE conversation_items (
	conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
	n            INTEGER NOT NULL,
	turn         INTEGER NOT NULL,
	kind         TEXT NOT NULL,
	rev          INTEGER NOT NULL,
	body         BLOB NOT NULL,
	output       BLOB NOT NULL,
	data         BLOB,
	undone       INTEGER NOT NULL,
	open         INTEGER NOT NULL,
	at           INTEGER NOT NULL,
	PRIMARY KEY (conversation, n)
) WITHOUT ROWID;
CREATE INDEX conversation_items_by_rev ON conversation_items (conversation, rev);
CREATE INDEX conversation_items_by_turn ON conversation_items (conversation, turn);
