-- needs schema 23 of 0.1.0
-- Version 23: conductors of several versions work on one database. Each tells its version and the newest schema version that it knows.
-- `written_by` is the number of the newest program whose fields the document of a row may have.

ALTER TABLE conductors ADD COLUMN program TEXT NOT NULL DEFAULT '';
ALTER TABLE conductors ADD COLUMN schema_known BIGINT NOT NULL DEFAULT 0;
ALTER TABLE nodes ADD COLUMN written_by BIGINT NOT NULL DEFAULT 0;
ALTER TABLE ports ADD COLUMN written_by BIGINT NOT NULL DEFAULT 0;
ALTER TABLE allocations ADD COLUMN written_by BIGINT NOT NULL DEFAULT 0;
ALTER TABLE resources ADD COLUMN written_by BIGINT NOT NULL DEFAULT 0;
ALTER TABLE racks ADD COLUMN written_by BIGINT NOT NULL DEFAULT 0;
ALTER TABLE hypervisor_profiles ADD COLUMN written_by BIGINT NOT NULL DEFAULT 0;
