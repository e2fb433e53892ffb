-- Version 12: several conductors share a PostgreSQL database. A conductor holds a lease until `alive_until`; every new lease of a host name
-- has a new epoch, and epoch 0 is a conductor that shares its database with no other. `instance` is the name of the process, and
-- `installation` names the certificate authority of its members. `settled` and `turns` tell how far it follows the changes of the others.

CREATE TABLE conductors (
    hostname         TEXT   NOT NULL PRIMARY KEY,
    created_at       BIGINT NOT NULL,
    seen_at          BIGINT NOT NULL,
    alive_until      BIGINT NOT NULL,
    conductor_groups TEXT   NOT NULL,
    instance         TEXT   NOT NULL DEFAULT '',
    installation     TEXT   NOT NULL DEFAULT '',
    epoch            BIGINT NOT NULL DEFAULT 0,
    draining         BIGINT NOT NULL DEFAULT 0,
    settled          TEXT   NOT NULL DEFAULT '',
    turns            BIGINT NOT NULL DEFAULT 0
);
