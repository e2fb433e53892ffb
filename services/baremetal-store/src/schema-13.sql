-- Version 13: resources that have no life of their own, such as chassis. `kind` names the kind of a resource, and the document is its
-- content. The name of the index names the column in errors.

CREATE TABLE resources (
    id         TEXT   NOT NULL PRIMARY KEY,
    version    BIGINT NOT NULL,
    kind       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT,
    node       TEXT REFERENCES nodes (id) ON DELETE CASCADE,
    name       TEXT,
    document   TEXT   NOT NULL
);
CREATE UNIQUE INDEX resources_name_key ON resources (kind, name);
CREATE INDEX resources_created ON resources (kind, created_at, id);
CREATE INDEX resources_node ON resources (node);
