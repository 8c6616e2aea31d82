-- Whether a token is good for asking models and for nothing else.
ALTER TABLE tokens ADD COLUMN models INTEGER NOT NULL DEFAULT 0;
