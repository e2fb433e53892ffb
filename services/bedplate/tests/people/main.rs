//! Tests of the command line as scripts and people use the program: through pipes, and on a terminal.
#![expect(clippy::unwrap_used, reason = "a failed step ends the test")]

mod consent;
mod doctor;
mod fixture;
mod pages;
mod pipe;
mod shells;
mod terminal;
