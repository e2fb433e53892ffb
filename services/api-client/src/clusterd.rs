//! The answers of clusterd.

mod backup;
mod cluster;
mod conductor;
mod host;
mod quota;
mod vm;

pub use backup::{Backup, ClusterRestore, Restore};
pub use cluster::{
    Cluster, ClusterLease, ClusterStatus, ClusterTemplate, ClusterUpgrade, Condition,
    CreatedCluster, Event, Events, Ledger, LedgerEntry, Member, Members, NodeGroup, Plan,
    PlannedObject, Shortage, UpgradePlan, UpgradeStep,
};
pub use conductor::Conductor;
pub use host::{
    ComputeService, Drain, DrainCheck, Drains, Host, HostCluster, HostMember, HostSummary, HostVm,
    Place, PlaceCluster, Places, RemainingServer,
};
pub use quota::{Quotas, ResourceQuota};
pub use vm::{ConsoleUrl, IdleVm, Image, Snapshot, Vm};
