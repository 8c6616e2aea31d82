INSERT INTO meta (key, value) VALUES ('instance', '0123abcd');
INSERT INTO sandboxes (id, name, label, owner, template, image, cpus, memory, pids, env, state, problem, created, changed, search)
VALUES ('00000000000000aa', 'ml', 'ML Experiments', '00000000000000u2', 'python-ml', '', 1.5, 2147483648, 512, '{"API_KEY":"x"}',
  'running', '', 1795251600000000, 1795251601000000, 'ml' || char(10) || 'ml experiments' || char(10) || 'python-ml' || char(10)),
  ('00000000000000bb', 'plain', '', '00000000000000u1', '', 'debian:trixie-slim', 0.5, 268435456, 64, '',
  'failed', 'The image has no shell.', 1795251500000000, 1795251501000000, 'plain' || char(10) || char(10) || char(10) || 'debian:trixie-slim');
