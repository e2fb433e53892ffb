//! The driver over real sockets, against trees of JSON in the shapes of several makers.

#![expect(clippy::unwrap_used, reason = "the helpers of tests may panic as tests do")]

mod fixture;

mod boot;
mod hostile;
mod inventory;
mod media;
mod mutants;
mod power;
mod session;
mod tls;
