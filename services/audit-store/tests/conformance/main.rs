//! Conformance tests of the trail, run on both databases.
//!
//! The PostgreSQL half runs if `BEDPLATE_TEST_POSTGRES` holds the URL of a database in which the user may create schemas.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod recording;
mod tampered;
mod trail;
