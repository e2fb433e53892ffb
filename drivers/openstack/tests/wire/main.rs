//! Tests of the driver over real sockets, against a small cloud that misbehaves on demand.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as tests do")]

mod cloud;

mod answers;
mod authentication;
mod pages;
mod retries;
mod tls;
mod uploads;
