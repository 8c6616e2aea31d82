-- Taken by a change that is made at the same time.
SELECT 1;
