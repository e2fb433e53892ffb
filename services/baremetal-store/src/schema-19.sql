-- Version 19: a node's BMC is found by its address and its system, so that no two nodes name one BMC. '?' stands for an address that is not
-- recorded yet: the store records it when it opens. A discovery is a machine, named by its MAC address, or a BMC, named by its socket. An
-- accepted discovery names its node.

ALTER TABLE nodes ADD COLUMN bmc TEXT;
ALTER TABLE nodes ADD COLUMN bmc_system TEXT;
UPDATE nodes SET bmc = '?' WHERE driver IN ('ipmi', 'redfish');
CREATE INDEX nodes_bmc ON nodes (bmc, bmc_system) WHERE bmc IS NOT NULL;

ALTER TABLE discoveries RENAME COLUMN mac TO id;
ALTER TABLE discoveries ADD COLUMN node TEXT REFERENCES nodes (id) ON DELETE CASCADE;
CREATE INDEX discoveries_node ON discoveries (node) WHERE node IS NOT NULL;
