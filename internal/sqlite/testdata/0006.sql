INSERT INTO preferences (user, name, value) VALUES ('00000000000000u2', 'workspace', '{"front":"files"}');
INSERT INTO terminal_names (sandbox, tab, name) VALUES ('00000000000000aa', 'main', 'server');
