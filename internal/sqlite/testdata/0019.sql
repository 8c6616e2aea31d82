UPDATE snapshots SET memory = 123456789 WHERE name = 'first';
