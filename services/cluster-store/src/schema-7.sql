-- Version 7: by which key a secret is sealed, and which key made what a machine reports with. A key that seals something
-- cannot be forgotten, and by one that is forgotten nothing can be sealed: the database refuses.

CREATE TABLE seals (
    id TEXT NOT NULL PRIMARY KEY
);

ALTER TABLE secrets ADD COLUMN sealed_by TEXT REFERENCES seals (id);
CREATE INDEX secrets_sealed ON secrets (sealed_by, cluster, name);

ALTER TABLE claims ADD COLUMN reports_by TEXT;
CREATE INDEX claims_reports ON claims (reports_by);
