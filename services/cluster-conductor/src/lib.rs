#![doc = include_str!("../README.md")]

mod borrow;
mod cloud;
mod handle;
mod keys;
mod lending;
mod machines;
mod nodes;
mod preview;
mod seals;
mod sizes;
mod tenancy;
mod turn;
mod vm;

pub use borrow::{BorrowError, Borrower};
pub use handle::{Conductor, KeysError, Settings};
pub use lending::LendingSettings;
pub use machines::{
    Answer, Handout, KubernetesSettings, MachineReported, MachineSettings, MachinesError,
    NodesListener, OwnConfigError, SourceAddress,
};
pub use openstack::compute::consoles::ConsoleKind;
pub use preview::Preview;
pub use sizes::Unmeasured;
pub use tenancy::{Tenancy, TenancyError};
pub use vm::{OfferedImage, VmError, VmFound, VmOrder, VmSettings};
