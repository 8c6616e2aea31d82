-- Whether the user asked to stay signed in. Those who are signed in already stay so.
ALTER TABLE sessions ADD COLUMN stay INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET stay = 1;
