-- Version 8: VMs, with their cloud objects, events and snapshots. The user-data of a VM is sealed, and names its key as a secret does.

CREATE TABLE vms (
    id         TEXT   NOT NULL PRIMARY KEY,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    project    TEXT   NOT NULL,
    person     TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    sealed     TEXT,
    sealed_by  TEXT   REFERENCES seals (id),
    document   TEXT   NOT NULL,
    UNIQUE (project, name)
);
CREATE INDEX vms_created ON vms (created_at, id);
CREATE INDEX vms_sealed ON vms (sealed_by, id);

CREATE TABLE vm_ledger (
    id         TEXT   NOT NULL PRIMARY KEY,
    vm         TEXT   NOT NULL REFERENCES vms (id),
    kind       TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    cloud_id   TEXT,
    state      TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT,
    UNIQUE (vm, kind, name)
);

CREATE TABLE vm_events (
    seq      SERIAL,
    id       TEXT   NOT NULL UNIQUE,
    vm       TEXT   NOT NULL REFERENCES vms (id) ON DELETE CASCADE,
    at       BIGINT NOT NULL,
    severity TEXT   NOT NULL,
    reason   TEXT   NOT NULL,
    message  TEXT   NOT NULL
);
CREATE INDEX vm_events_vm ON vm_events (vm, seq);

CREATE TABLE snapshots (
    id         TEXT   NOT NULL PRIMARY KEY,
    version    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    project    TEXT   NOT NULL,
    person     TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    vm         TEXT   NOT NULL,
    document   TEXT   NOT NULL,
    UNIQUE (project, name)
);
CREATE INDEX snapshots_created ON snapshots (created_at, id);
CREATE INDEX snapshots_vm ON snapshots (vm);
