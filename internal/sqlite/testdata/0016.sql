-- Version 16 brings no data.
SELECT 1;
