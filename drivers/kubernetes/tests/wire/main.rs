//! Tests of the driver against a small API server that misbehaves on demand.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as tests do")]

mod server;

mod answers;
mod certificates;
mod connections;
mod drains;
mod etcd;
mod obstacles;
