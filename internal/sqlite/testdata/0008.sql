UPDATE sandboxes SET fingerprint = '0123456789abcdef0123456789abcdef' WHERE name = 'spare';
