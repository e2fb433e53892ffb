-- Version 17: a history entry also records the project of the user, the state that the node was about to reach, and how many seconds the
-- node had been in its state. NULL where they are not known, and in rows of earlier versions.

ALTER TABLE history ADD COLUMN project TEXT;
ALTER TABLE history ADD COLUMN target TEXT;
ALTER TABLE history ADD COLUMN seconds BIGINT;
