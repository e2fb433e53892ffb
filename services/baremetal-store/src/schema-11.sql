-- Version 11: the user who asked for the event of a history entry. NULL if the service acted by itself, and in rows of earlier versions.

ALTER TABLE history ADD COLUMN user_id TEXT;
