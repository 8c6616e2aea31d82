-- What a sandbox has of its own in place of its template's: a JSON object, or '' for nothing. It may hold secrets.
ALTER TABLE sandboxes ADD COLUMN own TEXT NOT NULL DEFAULT '';
