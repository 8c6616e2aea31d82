-- What a pooled sandbox was made from, which had stood in its label.
ALTER TABLE sandboxes ADD COLUMN fingerprint TEXT NOT NULL DEFAULT '';
UPDATE sandboxes SET fingerprint = label, label = '' WHERE pooled = 1;
