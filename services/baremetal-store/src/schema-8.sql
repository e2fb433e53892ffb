-- Version 8: hypervisor profiles, the compute hosts that nodes are, and which nodes are joining or leaving an OpenStack.

CREATE TABLE hypervisor_profiles (
    name       TEXT   NOT NULL PRIMARY KEY,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT,
    document   TEXT   NOT NULL,
    sealed_by  TEXT   REFERENCES seals (id)
);
CREATE INDEX hypervisor_profiles_sealed ON hypervisor_profiles (sealed_by, name);

ALTER TABLE racks ADD COLUMN profile TEXT REFERENCES hypervisor_profiles (name);
CREATE INDEX racks_profile ON racks (profile);

ALTER TABLE nodes ADD COLUMN joining BIGINT NOT NULL DEFAULT 0;
CREATE INDEX nodes_joining ON nodes (id) WHERE joining = 1;
ALTER TABLE nodes ADD COLUMN host TEXT;
CREATE UNIQUE INDEX nodes_host_key ON nodes (host);
