//! `bedplate` as it is used: by a script at the other end of a pipe, and by a person at a terminal.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on ends here")]

mod consent;
mod doctor;
mod given;
mod pipe;
mod shells;
mod terminal;
