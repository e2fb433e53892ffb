-- Version 10: a canary for each key, which distinguishes the key from another key with the same id. NULL in rows of earlier versions until
-- the next start.

ALTER TABLE seals ADD COLUMN canary TEXT;
