-- Version 10: beside each key what tells it from another key with the same id. Nothing, where an earlier version wrote the row, until the
-- next start.

ALTER TABLE seals ADD COLUMN canary TEXT;
