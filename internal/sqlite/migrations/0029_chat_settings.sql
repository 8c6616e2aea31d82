-- What the agent of a conversation offers to choose.
ALTER TABLE conversations ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
