#![doc = include_str!("../README.md")]

mod check;
mod csv;
mod manifest;
mod wire;
mod yaml;

pub use check::check;
pub use manifest::{Bmc, BmcKind, Machine, Manifest, Mistake, Password, read_csv, read_yaml};
pub use wire::{MachineRequest, RackRequest, Unresolved, request};
