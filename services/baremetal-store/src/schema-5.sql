-- Version 5: reservations of whole nodes.

ALTER TABLE allocations ADD COLUMN reserved BIGINT NOT NULL DEFAULT 0;
CREATE INDEX allocations_reserved ON allocations (owner) WHERE reserved = 1;
