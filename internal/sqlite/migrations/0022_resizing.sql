-- Whether the row has new limits that the container may not have yet.
ALTER TABLE sandboxes ADD COLUMN resizing INTEGER NOT NULL DEFAULT 0;
