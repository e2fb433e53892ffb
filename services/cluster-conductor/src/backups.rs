//! Backups of etcd: the requests of members that take, test and fetch them.
//!
//! A member sends a snapshot as a stream, which is sealed with the cluster's own key on its way to the store, and opened on its way back. No
//! process holds a whole snapshot.

mod change;
mod sealed_bytes;
mod transfer;

use std::time::Duration;

use cluster_core::{
    Backup, BackupResult, BackupStep, BackupTask, BackupUuid, Cluster, backup_task, begin_backup,
    finish_backup, transfer_time,
};
use cluster_store::StoreError;
use tokio::time::timeout;
use tracing::{info, warn};

use crate::Conductor;
use crate::backup_store::ObjectBytes;
use crate::causes::chain;
use crate::context::ConductorContext;
use crate::member_configs::Reporter;

use change::{Changed, change};
pub(crate) use transfer::delete_objects;
pub use transfer::{SnapshotDownload, SnapshotReport};
use transfer::{TransferError, fetch, plain, store};

/// How long a transfer may take. One that begins late has less time: it ends before another member may get the same work.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(25 * 60);

/// The answer to a member that asks for work on backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackupHandout {
    /// Refused, without a reason.
    Nothing,
    /// Nothing to do: ask again in a while.
    Rest,
    /// Nothing to do yet: ask again soon.
    Soon,
    Work(BackupTask),
    /// Restart the kubelet: the control plane was restored so many times, and the member knows of fewer.
    Refresh(u32),
}

/// The answer to a member that sent a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotReceipt {
    /// Refused, without a reason.
    Nothing,
    Stored,
    /// The snapshot was not stored. The reason is recorded.
    Failed,
}

impl Conductor {
    /// Whether clusterd has a store for backups.
    pub fn stores_backups(&self) -> bool {
        self.context.backup_store.is_some()
    }

    /// Tells a member what to do for backups. `restores` is the number of restorations that the member knows of.
    pub async fn backup_work(&self, claim: &str, token: &str, restores: u32) -> BackupHandout {
        let answer = async {
            let Some(reporter) = Reporter::with_token(&self.context.secrets, claim, token).await?
            else {
                return Ok(BackupHandout::Nothing);
            };
            self.hand_out(&reporter, restores).await
        };
        answer.await.unwrap_or_else(|error: StoreError| {
            warn!("cannot answer a member's request for work on backups: {error}");
            BackupHandout::Soon
        })
    }

    async fn hand_out(
        &self,
        reporter: &Reporter,
        restores: u32,
    ) -> Result<BackupHandout, StoreError> {
        let Reporter { machine, cluster, groups } = reporter;
        if cluster.restore.is_some() {
            return Ok(BackupHandout::Soon);
        }
        if restores < cluster.restores {
            return Ok(BackupHandout::Refresh(cluster.restores));
        }
        let now = (self.context.settings.clock)();
        let Some(task) = backup_task(cluster, groups, machine, now) else {
            return Ok(BackupHandout::Rest);
        };
        if self.context.backup_store.is_none() {
            return Ok(BackupHandout::Rest);
        }
        // The record says that the store may have an object before the member sends one.
        let begin = |cluster: &Cluster| {
            let is_due = backup_task(cluster, groups, machine, now) == Some(task);
            is_due.then(|| begin_backup(cluster, task, machine, now)).flatten()
        };
        let (Changed::Yes(cluster) | Changed::No(cluster)) =
            change(&self.context, cluster.id, begin).await?
        else {
            return Ok(BackupHandout::Nothing);
        };
        let is_it = |it: &Backup| it.id == task.backup && it.is_worked_on_by(machine);
        let has_it = cluster.backups.iter().any(is_it);
        Ok(if has_it { BackupHandout::Work(task) } else { BackupHandout::Soon })
    }

    /// Stores the snapshot that a member sends, if the member was asked to take it, and records the result.
    pub async fn take_snapshot(
        &self,
        claim: &str,
        token: &str,
        backup: &str,
        said: SnapshotReport,
        bytes: ObjectBytes,
    ) -> SnapshotReceipt {
        let found = self.worker(claim, token, backup, BackupStep::Save).await;
        let Some((reporter, backup)) = found else { return SnapshotReceipt::Nothing };
        let left = transfer_time(&backup, (self.context.settings.clock)());
        let Some(left) = left else { return SnapshotReceipt::Nothing };
        let limit = left.unsigned_abs().min(TRANSFER_TIMEOUT);
        let context = self.context.clone();
        // The member may hang up, and the result has to be recorded all the same.
        let taking = async move {
            let stored = timeout(limit, store(&context, &reporter.cluster, &backup, said, bytes));
            let result = match stored.await.unwrap_or(Err(TransferError::TooSlow)) {
                Ok(contents) => BackupResult::Stored(contents),
                Err(error) => BackupResult::Failed(chain(&error)),
            };
            let is_stored = matches!(result, BackupResult::Stored(_));
            finish(&context, &reporter, backup.id, result).await;
            if is_stored { SnapshotReceipt::Stored } else { SnapshotReceipt::Failed }
        };
        tokio::spawn(taking).await.unwrap_or(SnapshotReceipt::Failed)
    }

    /// Returns the snapshot that a member has to test, or that its etcd starts from.
    pub async fn snapshot_for(
        &self,
        claim: &str,
        token: &str,
        backup: &str,
    ) -> Option<SnapshotDownload> {
        let found = Reporter::with_token(&self.context.secrets, claim, token).await;
        let reporter = found.unwrap_or_else(|error| {
            warn!("cannot answer a member that fetches a backup: {error}");
            None
        })?;
        let id = parse(backup)?;
        let backup = reporter.cluster.backups.iter().find(|it| it.id == id)?;
        let tests =
            backup.step() == Some(BackupStep::Test) && backup.is_worked_on_by(&reporter.machine);
        let starts = reporter.cluster.starts_from() == Some(id) && reporter.is_control_plane();
        if !tests && !starts {
            return None;
        }
        match fetch(&self.context, &reporter.cluster, backup).await {
            Ok(download) => {
                info!(cluster.id = %reporter.cluster.id, "sending backup {id} to {}", reporter.machine);
                download
            }
            Err(error) => {
                warn!(cluster.id = %reporter.cluster.id, "cannot send backup {id}: {}", chain(&error));
                None
            }
        }
    }

    /// Records a member's own report about its work on a backup: a test that passed, or why the work failed. Returns false when the member
    /// was not asked for the work.
    pub async fn note_backup_result(
        &self,
        claim: &str,
        token: &str,
        backup: &str,
        failed: Option<String>,
    ) -> bool {
        let Ok(Some(reporter)) = Reporter::with_token(&self.context.secrets, claim, token).await
        else {
            return false;
        };
        let Some(id) = parse(backup) else { return false };
        let result = match failed {
            Some(why) => BackupResult::Failed(plain(&why)),
            None => BackupResult::Tested,
        };
        finish(&self.context, &reporter, id, result).await
    }

    /// Returns the member that shows this token and the backup, if the member has to do this step of it.
    async fn worker(
        &self,
        claim: &str,
        token: &str,
        backup: &str,
        step: BackupStep,
    ) -> Option<(Reporter, Backup)> {
        let found = Reporter::with_token(&self.context.secrets, claim, token).await;
        let reporter = found.ok().flatten()?;
        let id = parse(backup)?;
        let found = reporter.cluster.backups.iter().find(|it| it.id == id)?;
        let is_due = found.step() == Some(step) && found.is_worked_on_by(&reporter.machine);
        let found = found.clone();
        is_due.then_some((reporter, found))
    }
}

/// Records the result of a member's work. Returns false when the member was not asked for it.
async fn finish(
    context: &ConductorContext,
    reporter: &Reporter,
    backup: BackupUuid,
    result: BackupResult,
) -> bool {
    let Reporter { machine, cluster, .. } = reporter;
    let now = (context.settings.clock)();
    let decide = |cluster: &Cluster| {
        let (cluster, event) = finish_backup(cluster, backup, machine, result.clone(), now)?;
        info!(cluster.id = %cluster.id, event.reason = %event.reason, "{}", event.message);
        Some((cluster, vec![event]))
    };
    match change(context, cluster.id, decide).await {
        Ok(changed) => matches!(changed, Changed::Yes(_)),
        Err(error) => {
            warn!(cluster.id = %cluster.id, "cannot record the result of a backup: {error}");
            false
        }
    }
}

fn parse(backup: &str) -> Option<BackupUuid> {
    backup.parse().ok()
}
