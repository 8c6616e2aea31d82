INSERT INTO gateway_providers (id, owner, name, kind, base_url, models, key, changed, sandbox, sandbox_name, port) VALUES
  ('00000000000000g3', '00000000000000u2', 'inside', 'ollama', '', 'null', NULL, 1795251600000000, '00000000000000aa', 'ml', 11434);
