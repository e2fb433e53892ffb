#![doc = include_str!("../README.md")]

mod check;
mod csv;
mod manifest;
mod wire;
mod yaml;

pub use self::csv::read_csv;
pub use check::check;
pub use manifest::{Bmc, BmcKind, Machine, Manifest, ManifestError, Password};
pub use wire::{MachineRequest, PasswordError, RackRequest, request};
pub use yaml::read_yaml;
