-- Version 9: of which project a letter tells. Those of one have no more than their share of the places.

ALTER TABLE outbox ADD COLUMN project TEXT;
CREATE INDEX outbox_project ON outbox (project);
