-- Version 1. TEXT compares byte by byte on both databases; SERIAL is an auto-incremented primary key.

CREATE TABLE templates (
    id         TEXT   NOT NULL PRIMARY KEY,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    project    TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    public     BIGINT NOT NULL,
    hidden     BIGINT NOT NULL,
    document   TEXT   NOT NULL,
    UNIQUE (project, name)
);
CREATE INDEX templates_created ON templates (created_at, id);

CREATE TABLE clusters (
    id         TEXT   NOT NULL PRIMARY KEY,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    project    TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    template   TEXT   NOT NULL REFERENCES templates (id),
    document   TEXT   NOT NULL,
    UNIQUE (project, name)
);
CREATE INDEX clusters_created ON clusters (created_at, id);
CREATE INDEX clusters_template ON clusters (template);

CREATE TABLE node_groups (
    id         TEXT   NOT NULL PRIMARY KEY,
    version    BIGINT NOT NULL,
    cluster    TEXT   NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    name       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    node_count BIGINT NOT NULL,
    document   TEXT   NOT NULL,
    UNIQUE (cluster, name)
);

CREATE TABLE ledger (
    id         TEXT   NOT NULL PRIMARY KEY,
    cluster    TEXT   NOT NULL REFERENCES clusters (id),
    kind       TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    cloud_id   TEXT,
    state      TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT,
    UNIQUE (cluster, kind, name)
);

CREATE TABLE events (
    seq      SERIAL,
    id       TEXT   NOT NULL UNIQUE,
    cluster  TEXT   NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    at       BIGINT NOT NULL,
    severity TEXT   NOT NULL,
    reason   TEXT   NOT NULL,
    message  TEXT   NOT NULL
);
CREATE INDEX events_cluster ON events (cluster, seq);

CREATE TABLE secrets (
    cluster TEXT NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    name    TEXT NOT NULL,
    sealed  TEXT NOT NULL,
    PRIMARY KEY (cluster, name)
);

CREATE TABLE claims (
    id          TEXT   NOT NULL PRIMARY KEY,
    cluster     TEXT   NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    machine     TEXT   NOT NULL,
    digest      TEXT   NOT NULL UNIQUE,
    facts       TEXT   NOT NULL,
    expires_at  BIGINT NOT NULL,
    redeemed_at BIGINT,
    redeemed_by TEXT
);
CREATE INDEX claims_cluster ON claims (cluster, machine);

CREATE TABLE machines (
    cluster TEXT   NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    machine TEXT   NOT NULL,
    claim   TEXT   NOT NULL UNIQUE REFERENCES claims (id) ON DELETE CASCADE,
    step    TEXT,
    failed  BIGINT NOT NULL,
    message TEXT   NOT NULL,
    at      BIGINT,
    PRIMARY KEY (cluster, machine)
);

CREATE TABLE certificates (
    id         TEXT   NOT NULL PRIMARY KEY,
    cluster    TEXT   NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    subject    TEXT   NOT NULL,
    issued_to  TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    not_after  BIGINT NOT NULL
);
CREATE INDEX certificates_cluster ON certificates (cluster);

CREATE TABLE quotas (
    id         TEXT   NOT NULL PRIMARY KEY,
    project    TEXT   NOT NULL,
    resource   TEXT   NOT NULL,
    hard_limit BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT,
    UNIQUE (project, resource)
);

CREATE TABLE services (
    hostname   TEXT   NOT NULL PRIMARY KEY,
    started_at BIGINT NOT NULL,
    seen_at    BIGINT NOT NULL,
    reports    BIGINT NOT NULL
);
