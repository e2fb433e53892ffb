-- Version 4: the DNS subdomain of each cluster, which no other cluster has.

CREATE TABLE subdomains (
    name    TEXT NOT NULL PRIMARY KEY,
    cluster TEXT NOT NULL REFERENCES clusters (id) ON DELETE CASCADE
);
CREATE INDEX subdomains_cluster ON subdomains (cluster);
