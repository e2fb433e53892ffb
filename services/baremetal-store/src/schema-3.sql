-- Version 3: which nodes have a lease, and the outbox of notices.

ALTER TABLE nodes ADD COLUMN lent BIGINT NOT NULL DEFAULT 0;
CREATE INDEX nodes_lent ON nodes (id) WHERE lent = 1;

CREATE TABLE outbox (
    seq      SERIAL,
    notice   TEXT   NOT NULL,
    receiver TEXT   NOT NULL,
    body     TEXT   NOT NULL,
    due_at   BIGINT NOT NULL,
    tries    BIGINT NOT NULL,
    UNIQUE (notice, receiver)
);
CREATE INDEX outbox_due ON outbox (due_at, seq);
