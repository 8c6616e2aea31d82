INSERT INTO trials (id, sandbox, name, owner, body, agent, model, mode, state, problem, snapshot, kept, created, clones) VALUES
  ('00000000000000e1', '00000000000000aa', 'lab', '00000000000000u2', 'Make it faster', 'sandboxd', 'best', 'auto', 'open', '', '00000000000000e2', '', 1795252000000000,
   '[{"name":"lab-try-1","sandbox":"00000000000000e3","conversation":"00000000000000e4","sent":true},{"name":"lab-try-2","problem":"The host is full."}]');
