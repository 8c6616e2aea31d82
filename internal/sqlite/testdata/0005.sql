INSERT INTO port_rules (sandbox, port, visibility) VALUES ('00000000000000aa', 3000, 'public'), ('00000000000000aa', 8888, 'shared');
INSERT INTO shares (id, sandbox, port, hash, label, owner, created, expires) VALUES
  ('00000000000000s1', '00000000000000aa', 8888, zeroblob(32), 'for Grace', '00000000000000u2', 1795251700000000, 4102444800000000);
