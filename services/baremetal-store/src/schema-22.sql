-- Version 22: several conductors share a PostgreSQL database. A conductor holds a lease until `alive_until`; every new lease of a host name
-- has a new epoch, and epoch 0 is a conductor that shares its database with no other. `instance` is the state folder of the process, and
-- `installation` names the key with which it makes tokens. `settled` and `turns` tell how far it follows the changes of the others.

ALTER TABLE conductors ADD COLUMN alive_until BIGINT NOT NULL DEFAULT 0;
ALTER TABLE conductors ADD COLUMN conductor_groups TEXT NOT NULL DEFAULT '[""]';
ALTER TABLE conductors ADD COLUMN instance TEXT NOT NULL DEFAULT '';
ALTER TABLE conductors ADD COLUMN installation TEXT NOT NULL DEFAULT '';
ALTER TABLE conductors ADD COLUMN epoch BIGINT NOT NULL DEFAULT 0;
ALTER TABLE conductors ADD COLUMN draining BIGINT NOT NULL DEFAULT 0;
ALTER TABLE conductors ADD COLUMN settled TEXT NOT NULL DEFAULT '';
ALTER TABLE conductors ADD COLUMN turns BIGINT NOT NULL DEFAULT 0;
UPDATE conductors SET alive_until = seen_at + 60000000;
