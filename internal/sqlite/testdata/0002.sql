INSERT INTO users (id, name, role, password, disabled, created) VALUES
  ('00000000000000u1', 'admin', 'admin', '', 0, 1795251000000000),
  ('00000000000000u2', 'ada', 'member', '$argon2id$v=19$m=64,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 0, 1795251100000000);
INSERT INTO sessions (id, key, user, parent, host, origin, created, seen, expires) VALUES
  ('00000000000000s1', randomblob(32), '00000000000000u2', NULL, '', '127.0.0.1', 1795251200000000, 1795251300000000, 4102444800000000),
  ('00000000000000s2', randomblob(32), '00000000000000u2', '00000000000000s1', 'ml.localhost:8080', '127.0.0.1', 1795251250000000, 1795251300000000, 4102444800000000);
INSERT INTO tokens (id, key, user, name, sandbox, prefix, created, used, expires) VALUES
  ('00000000000000t1', randomblob(32), '00000000000000u1', 'ci', '', 'sbx_abcdef', 1795251200000000, NULL, NULL);
