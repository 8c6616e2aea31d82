UPDATE sandboxes SET disk = 10737418240 WHERE name = 'plain';
