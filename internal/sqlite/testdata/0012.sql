INSERT INTO snapshots VALUES
  ('00000000000000f1', '00000000000000aa', '00000000000000u2', 'first', 'before the upgrade', '', 'manual', 1763888400000000, 'ready', '',
   '{"files":3,"folders":1,"bytes":42,"lost":[{"path":"socket","reason":"sockets are left out"}]}', 1, 250000000, 'sandboxd/snapshot:00000000000000f1',
   '{"name":"ml","label":"ML","template":"base","cpus":1.5,"memory":1073741824,"pids":256,"env":{"API_KEY":"x"},"overrides":{"ide":false},"freeze_after":900000000000,"stop_after":-1}'),
  ('00000000000000f2', '00000000000000aa', '00000000000000u2', '', '', '00000000000000f1', 'automatic', 1763892000000000, 'ready', '',
   '{"files":0,"folders":0,"bytes":0}', 0, 0, 'sandboxd/snapshot:00000000000000f2', '{"name":"ml","image":"debian"}');
INSERT INTO snapshot_heads VALUES ('00000000000000aa', '00000000000000f2', '00000000000000f1');
