UPDATE sandboxes SET state = 'restoring', cut_off = 'running' WHERE name = 'plain';
