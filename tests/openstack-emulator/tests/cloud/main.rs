//! The emulated cloud, seen from outside.

mod clients;
mod guests;
mod kubernetes;
mod manners;
mod misbehaviour;
mod program;
mod somebody;
mod thousands;
