//! Tries every route as every kind of caller.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod clusters;
mod field_access;
mod keystone;
mod machines;
mod people;
mod reserving;
mod reviewed;
mod runbooks;
mod service;
mod shared_objects;
mod trail;
mod walk;
