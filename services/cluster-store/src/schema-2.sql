-- Version 2: which revision of the authorities a machine said it holds; nothing, where it has never asked.

ALTER TABLE machines ADD COLUMN authorities BIGINT;
