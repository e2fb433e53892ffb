//! Our half of each conversation, with a small API server that misbehaves as the test says.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as tests do")]

mod server;

mod answers;
mod certificates;
mod connections;
mod drains;
mod etcd;
