-- Version 11: a canary for each key, which distinguishes the key from another with the same id (NULL for rows of earlier versions until
-- the next start), and how often the config of a claim was handed out again.

ALTER TABLE seals ADD COLUMN canary TEXT;

ALTER TABLE claims ADD COLUMN repeats BIGINT NOT NULL DEFAULT 0;
