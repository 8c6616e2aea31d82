UPDATE sandboxes SET base = 'sandboxd/base:0123456789ab' WHERE name = 'plain';
INSERT INTO updates (id, template, sandbox, asker, force, max_failures, state, image, problem, began, ended, items)
VALUES ('0123456789abcdef', 'base', '', '00000000000000u2', 1, 2, 'done', 'sandboxd/base:0123456789ab', '', 1700000000000000, 1700000060000000,
'[{"sandbox_id":"00000000000000aa","sandbox":"ml","owner":"00000000000000u2","state":"failed","problem":"It did not start.","log":["oops"],"safety":"0123456789abcdee","began":"2023-11-14T22:13:20Z","ended":"2023-11-14T22:14:20Z"}]');
