-- Version 11: who asked for what a line of history tells. Nothing, where the service did it by itself or an earlier version wrote the line.

ALTER TABLE history ADD COLUMN user_id TEXT;
