-- Version 9: the project that a letter is about, so that the letters of one project cannot fill the outbox.

ALTER TABLE outbox ADD COLUMN project TEXT;
CREATE INDEX outbox_project ON outbox (project);
