-- Whether the user asked to stay signed in. Those who are signed in already stay so. A session lives for 30 days from when it began, so
-- one that has lived longer than that, as it could before, begins anew with its last use.
ALTER TABLE sessions ADD COLUMN stay INTEGER NOT NULL DEFAULT 0;
UPDATE sessions SET stay = 1;
UPDATE sessions SET created = seen WHERE created < seen - 30 * 86400 * 1000000;
