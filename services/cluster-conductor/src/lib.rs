#![doc = include_str!("../README.md")]

mod actions;
mod backup_store;
mod backups;
mod causes;
mod certificates;
mod cloud;
mod cluster_secrets;
mod conductor;
mod context;
mod counted;
mod drain;
mod external_objects;
mod hosts;
mod member_configs;
mod members;
mod nodes;
mod obstacles;
mod preview;
mod projects;
mod replica;
mod seals;
mod settings;
mod sizes;
mod tenancy;
mod turn;
mod turn_error;
mod vm;
mod vm_user_data;

pub use backup_store::ObjectBytes;
pub use backups::{BackupHandout, SnapshotDownload, SnapshotReceipt, SnapshotReport};
pub use certificates::AuthorityKind;
pub use cluster_secrets::KeysError;
pub use conductor::RunError;
pub use context::Conductor;
pub use drain::{DrainError, DrainRequest};
pub use external_objects::{ExternalObjectError, ObjectUser};
pub use hosts::{Host, HostError, Role, ServersWithHosts, cluster_of, role, vm_of};
pub use member_configs::{
    Answer, CaHandout, CertificateAnswer, MemberConfigError, OwnConfigError, RebootReport,
    StepReport,
};
pub use openstack::compute::consoles::ConsoleKind;
pub use openstack::compute::servers::Server;
pub use openstack::compute::services::ComputeService;
pub use preview::Preview;
pub use replicas::now;
pub use settings::{
    BackupPlace, BackupSettings, ConductorMetrics, KubernetesSettings, LendingSettings,
    MachineSettings, NodesListener, OfferedImage, Settings, SourceAddress, VmSettings,
};
pub use sizes::SizesUnknown;
pub use tenancy::{Tenancy, TenancyError};
pub use vm::{ResolvedVmObjects, VmError, VmRequestObjects};
