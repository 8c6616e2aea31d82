INSERT INTO users (id, name, role, password, disabled, created) VALUES
  ('00000000000000u9', 'grace', 'member', '$argon2id$v=19$m=64,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA', 0, 1795251900000000);
INSERT INTO sessions (id, key, user, parent, host, origin, stay, created, seen, expires) VALUES
  ('00000000000000s9', randomblob(32), '00000000000000u9', NULL, '', '127.0.0.1', 0, 1795251910000000, 1795251920000000, 4102444800000000);
