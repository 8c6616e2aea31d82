-- What the state of a sandbox becomes when the work on its home is cut off.
ALTER TABLE sandboxes ADD COLUMN cut_off TEXT NOT NULL DEFAULT '';
