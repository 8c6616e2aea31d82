-- A provider of models may be a port of a sandbox, in place of base_url. sandbox is an id, which may be deleted by now; '' for none.
ALTER TABLE gateway_providers ADD COLUMN sandbox TEXT NOT NULL DEFAULT '';
ALTER TABLE gateway_providers ADD COLUMN sandbox_name TEXT NOT NULL DEFAULT '';
ALTER TABLE gateway_providers ADD COLUMN port INTEGER NOT NULL DEFAULT 0;
