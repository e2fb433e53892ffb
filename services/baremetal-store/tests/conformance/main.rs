//! What the store promises, tried on both databases.
//!
//! PostgreSQL is tried where `BEDPLATE_TEST_POSTGRES` holds the URL of a database in which schemas may be made.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod allocations;
mod arbitrary;
mod crash;
mod enrolment;
mod leases;
mod lists;
mod machine;
mod nodes;
mod opening;
mod profiles;
mod races;
mod records;
mod roundtrip;
mod scratch;
mod seals;
mod versions;
