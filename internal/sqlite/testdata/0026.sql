INSERT INTO gateway_providers (id, owner, name, kind, base_url, models, key, changed) VALUES
  ('00000000000000g1', NULL, 'cloud', 'anthropic', 'https://api.example.com', '["claude-opus-5-5"]', x'0102', 1795251600000000),
  ('00000000000000g2', '00000000000000u2', 'local', 'ollama', 'http://localhost:11434', 'null', NULL, 1795251600000000);
INSERT INTO gateway_aliases (owner, name, targets, changed) VALUES (NULL, 'fast', '[{"provider":"cloud","model":"claude-opus-5-5"}]', 1795251600000000);
INSERT INTO gateway_budgets (scope, user, sandbox, period, requests, tokens, cost) VALUES
  ('user', NULL, NULL, 'month', 0, 0, 20000000), ('sandbox', NULL, '00000000000000aa', 'day', 100, 0, 0);
INSERT INTO gateway_settings (id, off, log_content) VALUES (1, 0, 1);
INSERT INTO gateway_calls (id, time, user, sandbox, label, provider, protocol, asked, model, stream, status, first_byte, took, input, output, cache_read, cache_write, cost, priced, problem)
VALUES ('00064c9d0b5a8000aabbccdd', 1795251600000000, '00000000000000u2', '00000000000000aa', 'ml', 'cloud', 'messages', 'fast', 'claude-opus-5-5', 1, 200, 500000000, 2000000000, 10, 20, 30, 40, 1234, 1, '');
INSERT INTO gateway_usage (hour, user, sandbox, provider, model, user_name, label, requests, failed, input, output, cache_read, cache_write, cost)
VALUES (1795251600000000, '00000000000000u2', '00000000000000aa', 'cloud', 'claude-opus-5-5', 'ada', 'ml', 1, 0, 10, 20, 30, 40, 1234);
