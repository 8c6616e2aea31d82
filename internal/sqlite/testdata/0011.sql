UPDATE sandboxes SET root = 'sandboxd/snapshot:one', cloned_from = 'first', revert = '{"snapshot":"0123456789abcdef","root":"sandboxd/snapshot:two","overrides":{"ide":false}}' WHERE name = 'plain';
