-- Version 6: the outbox of notices.

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
