INSERT INTO tokens (id, key, user, name, sandbox, sandbox_id, models, prefix, created, used, expires) VALUES
  ('00000000000000t9', randomblob(32), '00000000000000u9', 'editor', '', '', 1, 'sbx_mnopqr', 1795251910000000, NULL, NULL);
