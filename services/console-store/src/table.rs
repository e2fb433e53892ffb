//! The tables: one file for each, with free functions on a connection.

pub(crate) mod guess;
pub(crate) mod session;
