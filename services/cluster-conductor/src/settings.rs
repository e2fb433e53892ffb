//! The settings of the conductor.

mod backups;
mod lending;
mod members;
mod vms;

use std::time::Duration;

use cluster_core::{BackupSchedule, BackupUuid, RepairLimits, TurnPauses};
use jiff::Timestamp;
use metrics::{ConditionGauges, TurnMetrics};
use reconcile::RetryPauses;
use spans::Tracer;

pub use backups::{BackupPlace, BackupSettings};
pub use lending::LendingSettings;
pub use members::{KubernetesSettings, MachineSettings, NodesListener, SourceAddress};
pub use vms::{OfferedImage, VmSettings};

/// How long to wait while the cloud works on something, or is busy.
const PAUSE: Duration = Duration::from_secs(1);

/// The settings of the conductor.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The name of this process in the lists of services and of conductors.
    pub hostname: String,
    /// A name that no other living process has: that of its locked file.
    pub instance: String,
    /// How many turns run at once.
    pub workers: usize,
    /// How often a cluster is observed when nothing changes.
    pub look_every: Duration,
    /// The bootstrap of servers to Kubernetes nodes, and the listener where they fetch their configs.
    pub machines: MachineSettings,
    /// When members are replaced.
    pub repair: RepairLimits,
    /// The stages at the end of clusters' leases, and the receivers of notices.
    pub lending: LendingSettings,
    pub vms: VmSettings,
    /// Backups of etcd; `None`: none are made.
    pub backups: Option<BackupSettings>,
    /// The counters of the conductor's work.
    pub metrics: ConductorMetrics,
    /// Begins the traces of turns that no request asked for.
    pub tracer: Tracer,
    pub clock: fn() -> Timestamp,
}

/// The counters of the conductor's work.
#[derive(Clone, Debug, Default)]
pub struct ConductorMetrics {
    pub turns: TurnMetrics,
    pub clusters: ConditionGauges,
}

impl Settings {
    /// Returns the pauses between turns.
    pub(crate) fn pauses(&self) -> TurnPauses {
        TurnPauses { soon: self.soon(), look_every: self.look_every }
    }

    /// Returns the schedule of backups, with an id for the next one.
    pub(crate) fn backup_schedule(&self) -> BackupSchedule {
        let rules = self.backups.as_ref().map(|backups| backups.rules);
        BackupSchedule { rules, next_id: BackupUuid::new_v4() }
    }

    /// Returns the pauses after a turn that failed.
    pub(crate) fn retry_pauses(&self) -> RetryPauses {
        RetryPauses { database: self.soon(), failed: self.look_every }
    }

    /// Returns how soon to look again while something is in progress.
    pub(crate) fn soon(&self) -> Duration {
        PAUSE.min(self.look_every)
    }
}
