#![doc = include_str!("../README.md")]

mod cloud;
mod handle;
mod keys;
mod machines;
mod nodes;
mod seal;
mod turn;

pub use handle::{Conductor, KeysError, Preview, Settings};
pub use machines::{
    Answer, KubernetesSettings, MachineReported, MachineSettings, MachinesError, NodesListener,
    OwnConfigError, SourceAddress,
};
pub use seal::{SealError, SealingKeys};
