//! What machines are given, what they are handed out, and what is heard of them.
#![expect(clippy::unwrap_used, reason = "a failed precondition ends the test")]

mod authorities;
mod claims;
mod configs;
mod given;
mod labels;
