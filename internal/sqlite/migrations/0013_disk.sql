-- Bytes that the home may take; 0 for no limit.
ALTER TABLE sandboxes ADD COLUMN disk INTEGER NOT NULL DEFAULT 0;
