-- needs schema 13 of 0.1.0
-- Version 13: conductors of several versions work on one database. Each tells its version and the newest schema version that it knows.
-- `written_by` is the number of the newest program whose fields the document of a row may have.

ALTER TABLE conductors ADD COLUMN program TEXT NOT NULL DEFAULT '';
ALTER TABLE conductors ADD COLUMN schema_known BIGINT NOT NULL DEFAULT 0;
ALTER TABLE templates ADD COLUMN written_by BIGINT NOT NULL DEFAULT 0;
ALTER TABLE clusters ADD COLUMN written_by BIGINT NOT NULL DEFAULT 0;
ALTER TABLE node_groups ADD COLUMN written_by BIGINT NOT NULL DEFAULT 0;
ALTER TABLE vms ADD COLUMN written_by BIGINT NOT NULL DEFAULT 0;
ALTER TABLE snapshots ADD COLUMN written_by BIGINT NOT NULL DEFAULT 0;
ALTER TABLE drains ADD COLUMN written_by BIGINT NOT NULL DEFAULT 0;
