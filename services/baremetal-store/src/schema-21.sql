-- Version 21: the indexes leave out nodes without a value. Most nodes have no rack, owner, lessee or host, and each index costs a page
-- when a node is written. A query for a value uses such an index as before.

DROP INDEX nodes_rack;
DROP INDEX nodes_owner;
DROP INDEX nodes_lessee;
DROP INDEX nodes_host_key;
CREATE INDEX nodes_rack ON nodes (rack, position) WHERE rack IS NOT NULL;
CREATE INDEX nodes_owner ON nodes (owner) WHERE owner IS NOT NULL;
CREATE INDEX nodes_lessee ON nodes (lessee) WHERE lessee IS NOT NULL;
CREATE UNIQUE INDEX nodes_host_key ON nodes (host) WHERE host IS NOT NULL;
