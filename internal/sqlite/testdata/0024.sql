INSERT INTO step_times (key, took, put) VALUES ('create/base/start', 420, 1);
