//! Tests of the console with both services, with requests as a browser sends them.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

mod access;
mod destroys;
mod fixture;
mod hosts;
mod many;
mod metrics;
mod pages;
mod profiles;
mod quotas;
mod samples;
mod serial;
mod shared;
