-- Version 2: allocations. An allocation has at most one node, and a node at most one allocation.

CREATE TABLE allocations (
    id             TEXT   NOT NULL PRIMARY KEY,
    version        BIGINT NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT,
    name           TEXT   UNIQUE,
    state          TEXT   NOT NULL,
    node           TEXT   UNIQUE REFERENCES nodes (id) ON DELETE CASCADE,
    resource_class TEXT,
    owner          TEXT,
    document       TEXT   NOT NULL
);
CREATE INDEX allocations_created ON allocations (created_at, id);
CREATE INDEX allocations_owner ON allocations (owner);
