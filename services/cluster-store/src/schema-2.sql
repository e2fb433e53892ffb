-- Version 2: the CA revision that a member said it holds; NULL if it has never asked for one.

ALTER TABLE machines ADD COLUMN authorities BIGINT;
