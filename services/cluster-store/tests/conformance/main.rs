//! The promises of the store, tested on both databases.
//!
//! The tests run on PostgreSQL when `BEDPLATE_TEST_POSTGRES` has the URL of a database in which schemas may be created.
#![expect(clippy::unwrap_used, reason = "a failed precondition ends the test")]

mod allowance;
mod cluster_rows;
mod clusters;
mod drains;
mod parts;
mod races;
mod records;
mod samples;
mod seals;
mod templates;
mod upgrades;
mod versions;
mod vms;
