INSERT INTO alert_rules (id, owner, position, name, kind, sandbox, template, threshold, pattern, lasts, remind, disabled, muted, channels) VALUES
  ('00000000000000r1', '00000000000000u2', 0, 'Errors', 'log-line', '00000000000000aa', '', 3, 'error', 0, 3600000000000, 0, NULL, '["00000000000000e1"]'),
  ('00000000000000r2', NULL, 0, 'Disk', 'host-disk', '', '', 90, '', 60000000000, 0, 1, 1795251700000000, 'null');
INSERT INTO alert_channels (id, owner, name, kind, address, secret) VALUES
  ('00000000000000e1', '00000000000000u2', 'hook', 'webhook', 'https://example.com/hook', 'whsec_AAAA');
INSERT INTO alerts (id, rule, rule_name, owner, kind, sandbox_id, sandbox, sandbox_owner, template, part, text, since, fired, resolved, reminded, muted) VALUES
  ('00000000000000f1', '00000000000000r1', 'Errors', '00000000000000u2', 'log-line', '00000000000000aa', 'ml', '00000000000000u2', 'python-ml', '', 'error',
  1795251600000000, 1795251700000000, 9223372036854775807, 1795251700000000, NULL);
INSERT INTO alert_deliveries (id, channel, message, created, next, attempts, sent, given_up, problem) VALUES
  ('00000000000000d1', '00000000000000e1', '{"id":"00000000000000m1","time":"2026-11-21T09:01:40Z","subject":"ml: log line","rule":"Errors","kind":"log-line","event":"firing","firing":[{"id":"00000000000000f1","rule_id":"00000000000000r1","rule":"Errors","owner":"00000000000000u2","kind":"log-line","sandbox_id":"00000000000000aa","sandbox":"ml","sandbox_owner":"00000000000000u2","template":"python-ml","state":"firing","text":"error","since":"2026-11-21T09:00:00Z","fired":"2026-11-21T09:01:40Z","reminded":"2026-11-21T09:01:40Z"}],"link":"http://localhost:8080/alerts"}',
  1795251700000000, 1795251730000000, 1, NULL, 0, 'It does not answer.');
