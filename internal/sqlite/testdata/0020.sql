UPDATE schedules SET root = 1 WHERE name = 'Every night';
