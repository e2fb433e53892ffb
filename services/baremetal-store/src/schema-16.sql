-- Version 16: the steps that an agent lists are kept, so that plans of later requests show them.

CREATE TABLE listed_steps (
    node     TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
    kind     TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (node, kind)
);
