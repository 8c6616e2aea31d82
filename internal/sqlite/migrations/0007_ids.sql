-- Tokens, host sessions and tombstones belong to a sandbox by its id: a name may be somebody else's later.
ALTER TABLE tokens ADD COLUMN sandbox_id TEXT NOT NULL DEFAULT '';
DELETE FROM tokens WHERE sandbox <> '' AND sandbox NOT IN (SELECT name FROM sandboxes);
UPDATE tokens SET sandbox_id = (SELECT id FROM sandboxes WHERE name = tokens.sandbox) WHERE sandbox <> '';

-- A browser gets a new one from the dashboard's session by itself.
ALTER TABLE sessions ADD COLUMN sandbox TEXT NOT NULL DEFAULT '';
DELETE FROM sessions WHERE host <> '';

ALTER TABLE graves RENAME TO tombstones;
ALTER TABLE tombstones ADD COLUMN id TEXT NOT NULL DEFAULT ''; -- '' for those from before
DROP INDEX graves_by_age;
CREATE INDEX tombstones_by_age ON tombstones (deleted);
