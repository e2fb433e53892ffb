-- Version 7: the key that seals each secret, and the key that each member's report token derives from. A key that seals something cannot
-- be removed, and nothing can be sealed with a removed key: the database refuses both.

CREATE TABLE seals (
    id TEXT NOT NULL PRIMARY KEY
);

ALTER TABLE secrets ADD COLUMN sealed_by TEXT REFERENCES seals (id);
CREATE INDEX secrets_sealed ON secrets (sealed_by, cluster, name);

ALTER TABLE claims ADD COLUMN reports_by TEXT;
CREATE INDEX claims_reports ON claims (reports_by);
