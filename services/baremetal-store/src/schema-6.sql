-- Version 6: the key that seals the secrets of a row: '-' if the row has no secrets, NULL if the row has not been scanned yet.
-- The foreign keys make the database refuse to delete a key that seals a row, and refuse rows that are sealed with an unknown key.

CREATE TABLE seals (
    id TEXT NOT NULL PRIMARY KEY
);
INSERT INTO seals (id) VALUES ('-');

ALTER TABLE nodes ADD COLUMN sealed_by TEXT REFERENCES seals (id);
CREATE INDEX nodes_sealed ON nodes (sealed_by, id);

ALTER TABLE racks ADD COLUMN sealed_by TEXT REFERENCES seals (id);
CREATE INDEX racks_sealed ON racks (sealed_by, name);
