-- Version 9: which nodes' last work ended badly, and how many are in which state without a look into their documents.

ALTER TABLE nodes ADD COLUMN failed BIGINT NOT NULL DEFAULT 0;
-- A document has the key only then. One with such a key of a client's own is set right when it is next written.
UPDATE nodes SET failed = 1 WHERE document LIKE '%"failure":{"reason":%';
CREATE INDEX nodes_failed ON nodes (id) WHERE failed = 1;
CREATE INDEX nodes_tally ON nodes (provision_state, busy, failed, owner, lessee) WHERE parent_node IS NULL;
