-- Version 10: drains of hosts, and the members that each takes out. Servers are found by their ids in the cloud.

CREATE TABLE drains (
    id       TEXT   NOT NULL UNIQUE,
    host     TEXT   NOT NULL PRIMARY KEY,
    version  BIGINT NOT NULL,
    asked_at BIGINT NOT NULL,
    document TEXT   NOT NULL
);

CREATE TABLE drain_takes (
    host    TEXT NOT NULL REFERENCES drains (host) ON DELETE CASCADE,
    cluster TEXT NOT NULL REFERENCES clusters (id) ON DELETE CASCADE,
    machine TEXT NOT NULL,
    PRIMARY KEY (host, cluster, machine)
);
CREATE INDEX drain_takes_cluster ON drain_takes (cluster);

CREATE INDEX ledger_cloud ON ledger (cloud_id);
CREATE INDEX vm_ledger_cloud ON vm_ledger (cloud_id);
