-- Version 6: by which key the secrets in a row are sealed: '-' where it holds none, nothing where nobody has looked yet.
-- A key that seals something cannot be forgotten, and by one that is forgotten nothing can be sealed: the database refuses.

CREATE TABLE seals (
    id TEXT NOT NULL PRIMARY KEY
);
INSERT INTO seals (id) VALUES ('-');

ALTER TABLE nodes ADD COLUMN sealed_by TEXT REFERENCES seals (id);
CREATE INDEX nodes_sealed ON nodes (sealed_by, id);

ALTER TABLE racks ADD COLUMN sealed_by TEXT REFERENCES seals (id);
CREATE INDEX racks_sealed ON racks (sealed_by, name);
