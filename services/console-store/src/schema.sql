-- Version 1: what several consoles have in common. The id of a session is a digest of its cookie. A bucket of guesses is full at `full_at`,
-- and has a guess less for each interval before that.

CREATE TABLE sessions (
    id      TEXT   NOT NULL PRIMARY KEY,
    sealed  TEXT   NOT NULL,
    ends_at BIGINT NOT NULL,
    used_at BIGINT NOT NULL
);
CREATE INDEX sessions_used ON sessions (used_at);

CREATE TABLE guesses (
    id      TEXT   NOT NULL PRIMARY KEY,
    full_at BIGINT NOT NULL
);
CREATE INDEX guesses_full ON guesses (full_at);
