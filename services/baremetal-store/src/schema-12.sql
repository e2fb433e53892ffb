-- Version 12: a lease of no port ends, a lease knows whether its address was probed, and an address that another machine uses is
-- left alone for a time. Leases of no port were kept for ever; nobody can tell how old they are.

ALTER TABLE leases ADD COLUMN expires_at BIGINT;
ALTER TABLE leases ADD COLUMN probed BIGINT NOT NULL DEFAULT 1;
DELETE FROM leases WHERE NOT EXISTS (SELECT 1 FROM ports WHERE ports.address = leases.mac);

CREATE TABLE addresses_in_use (
    address BIGINT NOT NULL PRIMARY KEY,
    until   BIGINT NOT NULL
);
