//! What the store promises, tried on both databases.
//!
//! PostgreSQL is tried where `BEDPLATE_TEST_POSTGRES` holds the URL of a database in which schemas may be made.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod allowance;
mod belongings;
mod clusters;
mod drains;
mod races;
mod records;
mod samples;
mod seals;
mod templates;
mod versions;
mod vms;
