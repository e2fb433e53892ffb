-- Version 11: beside each key what tells it from another key with the same id (nothing, where an earlier version wrote the row, until the
-- next start); and how often a claim's config was handed out again.

ALTER TABLE seals ADD COLUMN canary TEXT;

ALTER TABLE claims ADD COLUMN repeats BIGINT NOT NULL DEFAULT 0;
