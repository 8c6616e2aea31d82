-- One whose limits were changed when its server ended.
UPDATE sandboxes SET cpus = 1.5, memory = 3221225472, resizing = 1 WHERE name = (SELECT min(name) FROM sandboxes WHERE pooled = 0);
