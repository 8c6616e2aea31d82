INSERT INTO conversations (id, sandbox, owner, title, agent, model, mode, state, since, problem, held, rev, items, turn, used, source, queue, memory, created, changed) VALUES
  ('00000000000000f1', '00000000000000dd', '00000000000000u2', 'Fix the build', 'sandboxd', 'best', 'ask', 'failed', 1795252010000000, 'The model cannot be reached.', 1, 5, 2, 1,
   '{"Input":10,"Output":20,"Cached":5,"Cost":1234,"Context":15,"Window":200000}', '', '[{"id":"m2","user":"00000000000000u2","text":"and test it","At":"2026-11-21T09:06:50Z"}]',
   CAST('{"messages":[]}' AS BLOB), 1795252000000000, 1795252010000000);
INSERT INTO conversation_items (conversation, n, turn, kind, rev, body, output, data, undone, open, at) VALUES
  ('00000000000000f1', 1, 1, 'message', 1, CAST('fix the build' AS BLOB), x'', NULL, 0, 0, 1795252000000000),
  ('00000000000000f1', 2, 1, 'call', 4, x'', CAST('ok' AS BLOB), CAST('{"id":"c1","tool":"run_command","status":"ok"}' AS BLOB), 0, 0, 1795252005000000);
