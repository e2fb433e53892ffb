#![doc = include_str!("../README.md")]

pub use crate::claims::Claims;
pub use crate::cloud::{Cloud, fetch};
pub use crate::cluster::{control_plane, settings, worker};
pub use crate::kubectl::Kubectl;
pub use crate::network::{HOST, Network, objections};

mod claims;
mod cloud;
mod cluster;
mod kubectl;
mod network;
