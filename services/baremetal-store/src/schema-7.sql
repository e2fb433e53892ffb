-- Version 7: the project that a notice is about. The notices of one project may fill only a share of the outbox.

ALTER TABLE outbox ADD COLUMN project TEXT;
CREATE INDEX outbox_project ON outbox (project);
