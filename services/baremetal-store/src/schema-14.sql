-- Version 14: requests find ports by their names, which are unique. If several ports had the same name, only one of them keeps it.

ALTER TABLE ports ADD COLUMN name TEXT;
-- on SQLite
UPDATE ports SET name = json_extract(document, '$.name');
UPDATE ports SET name = NULL, document = json_remove(document, '$.name')
    WHERE EXISTS (SELECT 1 FROM ports other WHERE other.name = ports.name AND other.id < ports.id);
-- on PostgreSQL
UPDATE ports SET name = document::json ->> 'name';
UPDATE ports SET name = NULL, document = (document::jsonb - 'name')::text
    WHERE EXISTS (SELECT 1 FROM ports other WHERE other.name = ports.name AND other.id < ports.id);
-- on both
CREATE UNIQUE INDEX ports_name_key ON ports (name);
