#![doc = include_str!("../README.md")]

mod decision;
mod requeue;

pub use decision::{Decision, LogLevel, LogLine};
pub use requeue::{Requeue, time_left};
