//! The console with both services behind it, asked as a browser asks.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod access;
mod destroys;
mod given;
mod hosts;
mod many;
mod pages;
mod profiles;
mod quotas;
mod samples;
mod serial;
