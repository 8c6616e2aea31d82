-- The image of a snapshot that the container of a sandbox is made from, the sandbox that it is a clone of, and the snapshot that it is
-- about to be as.
ALTER TABLE sandboxes ADD COLUMN root TEXT NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD COLUMN cloned_from TEXT NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD COLUMN revert TEXT NOT NULL DEFAULT '';
