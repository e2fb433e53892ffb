-- Version 13: resources that only requests change, such as chassis. `kind` names the kind of a resource, and the document is its content.
-- `key` is a value besides the name that is unique among the resources of a kind. The names of the indexes name the columns in errors.

CREATE TABLE resources (
    id         TEXT   NOT NULL PRIMARY KEY,
    version    BIGINT NOT NULL,
    kind       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT,
    node       TEXT REFERENCES nodes (id) ON DELETE CASCADE,
    name       TEXT,
    key        TEXT,
    document   TEXT   NOT NULL,
    sealed_by  TEXT   REFERENCES seals (id)
);
CREATE UNIQUE INDEX resources_name_key ON resources (kind, name);
CREATE UNIQUE INDEX resources_key_key ON resources (kind, key);
CREATE INDEX resources_created ON resources (kind, created_at, id);
CREATE INDEX resources_node ON resources (node);
CREATE INDEX resources_sealed ON resources (sealed_by, id);
