-- Version 18: a node may have a fault, for which the conductor put it into maintenance.

ALTER TABLE nodes ADD COLUMN fault TEXT;
CREATE INDEX nodes_fault ON nodes (fault) WHERE fault IS NOT NULL;
