INSERT INTO schedules (id, owner, name, cron, zone, target, sandbox, template, repository, keep_last, keep_daily, keep_weekly, keep_monthly, test_cron, enabled, created, changed, next, next_test)
  VALUES ('00000000000000f1', '00000000000000u2', 'Every night', '30 3 * * *', 'Europe/Berlin', 'sandbox', '00000000000000aa', '', '', 3, 7, 4, 12, '', 1, 1795512720000000, 1795512720000000, 1795512720000000, NULL);
INSERT INTO schedule_runs (id, schedule, work, state, due, missed, began, ended, problem, items)
  VALUES ('00000000000000f2', '00000000000000f1', 'backup', 'done', 1795512720000000, 0, 1795512720000000, 1795512721000000, '',
    '[{"sandbox_id":"00000000000000aa","sandbox":"ml","backup":"0123456789abcdef","tries":1,"ended":"2026-11-24T09:12:01Z"}]');
INSERT INTO schedule_unkept VALUES ('0123456789abcdee', 1795512720000000);
