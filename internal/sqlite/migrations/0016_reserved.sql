-- Reserved; has no effect.
SELECT 1;
