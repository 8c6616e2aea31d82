INSERT INTO sessions (id, key, user, parent, host, sandbox, origin, created, seen, expires) VALUES
  ('00000000000000s3', randomblob(32), '00000000000000u2', '00000000000000s1', 'ml.localhost:8080', '00000000000000aa', '127.0.0.1', 1795251260000000, 1795251300000000, 4102444800000000);
INSERT INTO tokens (id, key, user, name, sandbox, sandbox_id, prefix, created, used, expires) VALUES
  ('00000000000000t2', randomblob(32), '00000000000000u2', 'ci', 'ml', '00000000000000aa', 'sbx_ghijkl', 1795251200000000, NULL, NULL);
INSERT INTO tombstones (id, name, owner, deleted) VALUES ('00000000000000cc', 'late', '00000000000000u2', 1795251200000000);
