-- Version 12: leases without a port expire, a lease records whether its address was probed, and an address that another machine uses is
-- skipped for a time. Existing leases without a port were kept for ever and have no age, so they are deleted.

ALTER TABLE leases ADD COLUMN expires_at BIGINT;
ALTER TABLE leases ADD COLUMN probed BIGINT NOT NULL DEFAULT 1;
DELETE FROM leases WHERE NOT EXISTS (SELECT 1 FROM ports WHERE ports.address = leases.mac);

CREATE TABLE addresses_in_use (
    address BIGINT NOT NULL PRIMARY KEY,
    until   BIGINT NOT NULL
);
