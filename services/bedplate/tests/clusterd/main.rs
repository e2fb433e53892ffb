//! Tests of `bedplate` against a clusterd that runs in the test.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

mod audit;
mod fixture;
mod magnum;
