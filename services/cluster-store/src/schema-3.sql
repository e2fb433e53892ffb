-- Version 3: the use of limits, and the limits of persons. The limits of projects are in quotas.

CREATE TABLE holdings (
    holder       TEXT   NOT NULL PRIMARY KEY,
    cluster      TEXT   REFERENCES clusters (id) ON DELETE CASCADE,
    machine      TEXT   NOT NULL,
    project      TEXT   NOT NULL,
    person       TEXT   NOT NULL,
    leaving      BIGINT NOT NULL,
    measured     BIGINT NOT NULL,
    clusters     BIGINT NOT NULL,
    nodes        BIGINT NOT NULL,
    vms          BIGINT NOT NULL,
    vcpus        BIGINT NOT NULL,
    ram_mib      BIGINT NOT NULL,
    disk_gib     BIGINT NOT NULL,
    gpus         BIGINT NOT NULL,
    floating_ips BIGINT NOT NULL
);
CREATE INDEX holdings_project ON holdings (project, person);
CREATE INDEX holdings_cluster ON holdings (cluster);

CREATE TABLE grants (
    project    TEXT   NOT NULL,
    person     TEXT   NOT NULL,
    resource   TEXT   NOT NULL,
    hard_limit BIGINT NOT NULL,
    set_at     BIGINT NOT NULL,
    PRIMARY KEY (project, person, resource)
);
