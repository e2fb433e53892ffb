-- Version 9: which nodes' last work failed, and an index that counts nodes by state without reading their documents.

ALTER TABLE nodes ADD COLUMN failed BIGINT NOT NULL DEFAULT 0;
-- The document of a node has the key "failure" only after a failure. A document that contains such a key of a client's own is corrected at
-- its next write.
UPDATE nodes SET failed = 1 WHERE document LIKE '%"failure":{"reason":%';
CREATE INDEX nodes_failed ON nodes (id) WHERE failed = 1;
CREATE INDEX nodes_tally ON nodes (provision_state, busy, failed, owner, lessee) WHERE parent_node IS NULL;
