INSERT INTO volumes (id, name, note, mode, everyone, templates, sandboxes, created, deleting) VALUES
('00000000000000v1', 'models', 'Weights', 'ro', 0, '["python-ml"]', '["0123456789abcdef"]', 1700000000000000, 0),
('00000000000000v2', 'models', '', 'rw', 1, '[]', '[]', 1700000000000000, 1);
