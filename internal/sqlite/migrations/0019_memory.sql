-- Bytes that a snapshot has of the memory of its sandbox; 0 when it has none.
ALTER TABLE snapshots ADD COLUMN memory INTEGER NOT NULL DEFAULT 0;
