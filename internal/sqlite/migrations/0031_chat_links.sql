-- Links by which others can read a conversation, and the conversations that do something, for the list of sandboxes.
CREATE TABLE conversation_links (
	id           TEXT NOT NULL PRIMARY KEY,
	conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE,
	hash         BLOB NOT NULL UNIQUE, -- SHA-256 of the secret
	maker        TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
	created      INTEGER NOT NULL,
	expires      INTEGER -- NULL for never
) STRICT;
CREATE INDEX conversation_links_of ON conversation_links (conversation, created);
CREATE INDEX conversation_links_by_maker ON conversation_links (maker);
CREATE INDEX conversations_stirring ON conversations (id) WHERE state <> 'idle';
