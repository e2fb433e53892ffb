-- Version 15: the settings of firmware are recorded, some resources, such as runbooks, belong to projects, and an erasure is a clean step of
-- the agent. Cleaning in progress goes on; its tasks are found by the sequence that every cleaning had.

UPDATE nodes SET document = replace(
    document,
    '"await_agent",{"agent":"erase_metadata"},{"agent":"sync"}',
    '"await_agent",{"step":{"kind":"clean","interface":"deploy","step":"erase_devices_metadata","priority":99}},{"agent":"sync"}'
) WHERE busy = 1;
UPDATE nodes SET document = replace(
    document,
    '"await_agent",{"agent":"erase_disks"},{"agent":"sync"}',
    '"await_agent",{"step":{"kind":"clean","interface":"deploy","step":"erase_devices","priority":10}},{"agent":"sync"}'
) WHERE busy = 1;

CREATE TABLE bios_settings (
    node     TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
    name     TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (node, name)
);

ALTER TABLE resources ADD COLUMN owner TEXT;
ALTER TABLE resources ADD COLUMN is_public BIGINT NOT NULL DEFAULT 0;
