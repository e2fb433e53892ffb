#![doc = include_str!("../README.md")]

mod borrow;
mod cloud;
mod drain;
mod handle;
mod hosts;
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
pub use drain::{DrainAsk, DrainError};
pub use handle::{Conductor, KeysError, Settings};
pub use hosts::{Host, HostError, Places, Role, of, role, vm_of};
pub use lending::LendingSettings;
pub use machines::{
    Answer, Handout, KubernetesSettings, MachineReported, MachineSettings, MachinesError,
    NodesListener, OwnConfigError, SourceAddress,
};
pub use openstack::compute::consoles::ConsoleKind;
pub use openstack::compute::servers::Server;
pub use openstack::compute::services::ComputeService;
pub use preview::Preview;
pub use sizes::Unmeasured;
pub use tenancy::{Tenancy, TenancyError};
pub use vm::{OfferedImage, VmError, VmFound, VmOrder, VmSettings};
