//! The user-data and configs of members, and the reports that members send.
#![expect(clippy::unwrap_used, reason = "a failed precondition ends the test")]

mod authorities;
mod backups;
mod claims;
mod configs;
mod given;
mod labels;
mod renewal;
