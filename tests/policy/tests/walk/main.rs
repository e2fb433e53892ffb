//! Tries every route as every kind of caller.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod borrowing;
mod clusters;
mod keystone;
mod lending;
mod machines;
mod people;
mod reserving;
mod reviewed;
mod service;
mod trail;
mod walk;
