#![doc = include_str!("../README.md")]

mod cloud;
mod drain;
mod external_objects;
mod handle;
mod hosts;
mod keys;
mod lending;
mod member_configs;
mod nodes;
mod preview;
mod seals;
mod sizes;
mod tenancy;
mod turn;
mod vm;

pub use drain::{DrainError, DrainRequest};
pub use external_objects::{ExternalObjectError, ObjectUser};
pub use handle::{Conductor, KeysError, Settings};
pub use hosts::{Host, HostError, Role, ServersWithHosts, cluster_of, role, vm_of};
pub use lending::LendingSettings;
pub use member_configs::{
    Answer, CaHandout, KubernetesSettings, MachineSettings, MemberConfigError, NodesListener,
    OwnConfigError, SourceAddress, StepReport,
};
pub use openstack::compute::consoles::ConsoleKind;
pub use openstack::compute::servers::Server;
pub use openstack::compute::services::ComputeService;
pub use preview::Preview;
pub use sizes::SizesUnknown;
pub use tenancy::{Tenancy, TenancyError};
pub use vm::{OfferedImage, ResolvedVmObjects, VmError, VmRequestObjects, VmSettings};
