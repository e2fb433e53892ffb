//! Wire tests: requests as clients send them, and responses compared with literal JSON.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

mod actions;
mod api;
mod audit;
mod auth;
mod backups;
mod bedplate;
mod certificates;
mod client_types;
mod clusters;
mod conductors;
mod drains;
mod event_stream;
mod hostile;
mod import;
mod lease;
mod limits;
mod limits_and_usage;
mod lists;
mod machines;
mod magnum;
mod node_groups;
mod openapi;
mod parts;
mod plan;
mod quotas;
mod templates;
mod upgrade;
mod versions;
