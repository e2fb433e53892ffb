#![doc = include_str!("../README.md")]

pub use crate::daemon::Daemon;
pub use crate::machine::{Firmware, Machine};
pub use crate::rack::Rack;
pub use crate::story::{Image, Story, image};

mod daemon;
mod machine;
mod rack;
pub mod road;
mod story;
