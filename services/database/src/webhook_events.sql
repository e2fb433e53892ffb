-- Adds the notifications to webhooks that wait to be sent, and those that were given up. The script is a part of the schemas of both services.

CREATE TABLE webhook_events (
    seq        SERIAL,
    webhook    TEXT   NOT NULL,
    object     TEXT   NOT NULL,
    event      TEXT   NOT NULL,
    kind       TEXT   NOT NULL,
    body       TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    due_at     BIGINT NOT NULL,
    tries      BIGINT NOT NULL,
    dead_at    BIGINT,
    problem    TEXT,
    UNIQUE (event, webhook)
);
CREATE INDEX webhook_events_object ON webhook_events (webhook, object, seq);
CREATE INDEX webhook_events_dead ON webhook_events (webhook, dead_at, seq);
