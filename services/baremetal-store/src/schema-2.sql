-- Version 2: allocations, each of a node at most, and no node of two.

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
