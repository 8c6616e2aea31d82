UPDATE sandboxes SET own = '{"services":[{"name":"web","command":["npm","start"],"port":3000,"cwd":"/srv","env":{"A":"b"},"autostart":true,"health":{"path":"/healthz","interval":5000000000}}],"ide":true}' WHERE name = 'ml';
INSERT INTO sandboxes (id, name, label, owner, template, image, cpus, memory, pids, env, state, problem, created, changed, search,
  freeze_after, stop_after, pooled, own)
VALUES ('00000000000000dd', 'bare', '', '00000000000000u2', 'python-ml', '', 1.5, 2147483648, 512, '', 'asleep', '', 1795251700000000,
  1795251701000000, 'bare' || char(10) || char(10) || 'python-ml' || char(10), 0, 0, 0, '{"services":[]}');
