-- Whether the backups of a schedule have what was changed of the root file system.
ALTER TABLE schedules ADD COLUMN root INTEGER NOT NULL DEFAULT 0;
