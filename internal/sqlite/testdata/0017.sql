INSERT INTO template_sources (template, url, ref, path, secret, host_keys, commit_id, dated, fetched, tried, problem)
VALUES ('rust', 'ssh://git@git.lan/t.git', 'main', 'rust', x'0102', 'git.lan ssh-ed25519 AAAA', 'c0ffee', 1700000000000000, 1700000000000000, NULL, '');
INSERT INTO template_plans (template, cron, zone, no_cache, next) VALUES ('base', '0 4 * * 1', 'UTC', 1, 1700000000000000);
INSERT INTO template_builds (number, template, image, commit_id, why, asked_by, state, problem, began, ended, log)
VALUES (7, 'rust', 'sandboxd/rust:0123', 'c0ffee', 'asked', 'ann', 'running', '', 1700000000000000, NULL, '');
