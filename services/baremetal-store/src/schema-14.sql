-- Version 14: requests find ports by their names, which are unique. If several ports had the same name, the port with the lowest id keeps
-- it. A name in a document is not read any more. PostgreSQL's JSON functions refuse a document with a NUL anywhere, so they get only the
-- name, which is the second field of every document.

ALTER TABLE ports ADD COLUMN name TEXT;
-- on SQLite
UPDATE ports SET name = json_extract(document, '$.name');
-- on PostgreSQL
UPDATE ports SET name =
    ('"' || substring(document FROM '^{"created_at":"[^"]*","name":"((?:[^"\\]|\\.)*)"') || '"')::json #>> '{}';
-- on both
UPDATE ports SET name = NULL
    WHERE EXISTS (SELECT 1 FROM ports other WHERE other.name = ports.name AND other.id < ports.id);
CREATE UNIQUE INDEX ports_name_key ON ports (name);
