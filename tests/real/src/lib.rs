#![doc = include_str!("../README.md")]

pub use crate::cloud::{Cloud, until};
pub use crate::daemon::Daemon;
pub use crate::keyboard::Keyboard;
pub use crate::machine::{Firmware, Machine};
pub use crate::rack::{Network, Rack, RackOptions};
pub use crate::replicas::Replicas;
pub use crate::story::{Image, Story, image, image_over, images_folder};

mod cloud;
mod daemon;
mod ironic;
mod keyboard;
mod machine;
mod rack;
mod replicas;
pub mod stations;
mod story;
