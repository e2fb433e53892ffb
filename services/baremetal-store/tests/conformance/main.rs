//! The promises of the store, tested on both databases.
//!
//! The tests on PostgreSQL run if `BEDPLATE_TEST_POSTGRES` contains the URL of a database in which schemas may be created.
#![expect(clippy::unwrap_used, reason = "a failed setup fails the test")]

mod allocations;
mod arbitrary;
mod bios;
mod bmcs;
mod conductors;
mod crash;
mod enrolment;
mod imports;
mod leases;
mod listed_steps;
mod lists;
mod machine;
mod nodes;
mod notifications;
mod opening;
mod parts;
mod profiles;
mod races;
mod records;
mod resources;
mod roundtrip;
mod scratch;
mod seals;
mod upgrades;
mod versions;
