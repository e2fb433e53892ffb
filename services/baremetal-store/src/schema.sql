-- Version 1. TEXT compares byte by byte on both databases. SERIAL stands for a key that counts up.

CREATE TABLE nodes (
    id                   TEXT   NOT NULL PRIMARY KEY,
    version              BIGINT NOT NULL,
    created_at           BIGINT NOT NULL,
    updated_at           BIGINT,
    power_state          TEXT,
    name                 TEXT   UNIQUE,
    instance_uuid        TEXT   UNIQUE,
    instance_name        TEXT,
    driver               TEXT   NOT NULL,
    provision_state      TEXT   NOT NULL,
    provision_updated_at BIGINT,
    resource_class       TEXT,
    conductor_group      TEXT   NOT NULL,
    owner                TEXT,
    lessee               TEXT,
    shard                TEXT,
    parent_node          TEXT,
    chassis              TEXT,
    description          TEXT,
    rack                 TEXT,
    position             BIGINT,
    maintenance          BIGINT NOT NULL,
    retired              BIGINT NOT NULL,
    busy                 BIGINT NOT NULL,
    document             TEXT   NOT NULL
);
CREATE INDEX nodes_created ON nodes (created_at, id);
CREATE INDEX nodes_state ON nodes (provision_state, id);
CREATE INDEX nodes_rack ON nodes (rack, position);
CREATE INDEX nodes_owner ON nodes (owner);
CREATE INDEX nodes_lessee ON nodes (lessee);
CREATE INDEX nodes_busy ON nodes (id) WHERE busy = 1;

CREATE TABLE ports (
    id         TEXT   NOT NULL PRIMARY KEY,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT,
    node       TEXT   NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
    address    TEXT   NOT NULL UNIQUE,
    portgroup  TEXT,
    document   TEXT   NOT NULL
);
CREATE INDEX ports_node ON ports (node);
CREATE INDEX ports_created ON ports (created_at, id);

CREATE TABLE boots (
    node          TEXT NOT NULL PRIMARY KEY REFERENCES nodes (id) ON DELETE CASCADE,
    work          TEXT NOT NULL,
    nonce         TEXT NOT NULL,
    script_at     BIGINT,
    inventory_at  BIGINT,
    callback_url  TEXT,
    certificate   TEXT,
    agent_version TEXT,
    seen_at       BIGINT
);

CREATE TABLE inspections (
    node        TEXT   NOT NULL PRIMARY KEY REFERENCES nodes (id) ON DELETE CASCADE,
    at          BIGINT NOT NULL,
    inventory   TEXT   NOT NULL,
    plugin_data TEXT   NOT NULL
);

CREATE TABLE history (
    seq        SERIAL,
    id         TEXT   NOT NULL UNIQUE,
    node       TEXT   NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
    at         BIGINT NOT NULL,
    severity   TEXT   NOT NULL,
    state_from TEXT   NOT NULL,
    state_to   TEXT   NOT NULL,
    event      TEXT   NOT NULL
);
CREATE INDEX history_node ON history (node, seq);

CREATE TABLE leases (
    mac     TEXT   NOT NULL PRIMARY KEY,
    address BIGINT NOT NULL UNIQUE
);

CREATE TABLE discoveries (
    mac           TEXT   NOT NULL PRIMARY KEY,
    first_seen_at BIGINT NOT NULL,
    last_seen_at  BIGINT NOT NULL,
    data          TEXT
);
CREATE INDEX discoveries_seen ON discoveries (last_seen_at DESC, mac);

CREATE TABLE conductors (
    hostname TEXT   NOT NULL PRIMARY KEY,
    seen_at  BIGINT NOT NULL
);

CREATE TABLE racks (
    name     TEXT   NOT NULL PRIMARY KEY,
    version  BIGINT NOT NULL,
    document TEXT   NOT NULL
);
