//! What machines are given, what they are handed out, and what is heard of them.

mod claims;
mod configs;
mod given;
