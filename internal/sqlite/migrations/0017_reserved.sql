-- Nothing: the number is another change's.
SELECT 1;
