UPDATE sandboxes SET state = 'frozen', freeze_after = 900000000000, stop_after = -1 WHERE name = 'ml';
INSERT INTO sandboxes (id, name, label, owner, template, image, cpus, memory, pids, env, state, problem, created, changed, search,
  freeze_after, stop_after, pooled)
VALUES ('00000000000000cc', 'spare', '', '', 'python-ml', '', 1.5, 2147483648, 512, '', 'frozen', '', 1795251700000000,
  1795251701000000, 'spare' || char(10) || char(10) || 'python-ml' || char(10), 0, 0, 1);
INSERT INTO graves (name, owner, deleted) VALUES ('gone', '00000000000000u2', 1795251700000000);
INSERT INTO holds (id, sandbox, owner, reason, created, expires) VALUES
  ('00000000000000h1', '00000000000000aa', '00000000000000u2', 'training', 1795251700000000, 4102444800000000);
