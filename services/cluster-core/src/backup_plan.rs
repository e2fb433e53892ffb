//! Decides about backups: which one is due, which member takes or tests it, and which ones are no longer kept.

use jiff::{SignedDuration, Timestamp};

use crate::backup::NOT_IN_TIME;
use crate::{
    Backup, BackupContents, BackupOrigin, BackupState, BackupStep, BackupUuid, BackupWork, Cluster,
    DesiredState, Event, GroupRole, MemberName, NodeGroup, Refusal, Severity,
};

/// How long a member may work on a backup before another member gets it. A transfer ends earlier (`transfer_time`).
pub(crate) const BACKUP_WORK_LASTS: SignedDuration = SignedDuration::from_mins(30);
/// How long the store may still carry out a write that got no answer.
const LANDS_WITHIN: SignedDuration = SignedDuration::from_mins(1);
/// How long a backup may wait for a member that takes it.
const WAITS_FOR: SignedDuration = SignedDuration::from_hours(1);
/// The longest pause after a scheduled backup that failed.
const AFTER_FAILURE: SignedDuration = SignedDuration::from_hours(1);
/// The most backups that callers requested and did not delete.
const MOST_REQUESTED: usize = 20;

/// When backups are made, and how many are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupRules {
    /// How often each cluster gets a backup; `None`: only on request.
    pub every: Option<SignedDuration>,
    /// How many scheduled backups are kept.
    pub keep: usize,
    /// How long scheduled backups are kept. The newest tested one is kept in any case.
    pub keep_for: SignedDuration,
}

/// The part of a turn that concerns backups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupSchedule {
    /// `None`: clusterd has no store for backups.
    pub rules: Option<BackupRules>,
    /// The id of the next scheduled backup.
    pub next_id: BackupUuid,
}

/// The work that a member is handed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackupTask {
    pub backup: BackupUuid,
    pub step: BackupStep,
}

/// Returns what `member` has to do for a backup now; `None`: nothing.
///
/// One ready control-plane member works on a backup at a time; after a failure it is the next one's turn. A member that asks again, as after
/// a restart, gets the same work again.
pub fn backup_task(
    cluster: &Cluster,
    groups: &[NodeGroup],
    member: &MemberName,
    now: Timestamp,
) -> Option<BackupTask> {
    if cluster.desire == DesiredState::Gone || cluster.restore.is_some() {
        return None;
    }
    let masters = groups.iter().filter(|group| group.role == GroupRole::Master);
    let is_ready = |it: &MemberName| cluster.nodes.contains(it) && !cluster.unready.contains(it);
    let ready: Vec<MemberName> = masters.flat_map(NodeGroup::refs).filter(is_ready).collect();
    let due = |backup: &&Backup| backup.step().is_some();
    let backup = cluster.backups.iter().filter(due).min_by_key(|backup| backup.requested_at)?;
    let is_member = match &backup.work {
        Some(work) if !is_late(work.since, now) => work.member == *member,
        Some(_) | None => {
            let failures = backup.failures as usize + usize::from(backup.work.is_some());
            ready.get(failures % ready.len().max(1)) == Some(member)
        }
    };
    if !is_member || !ready.contains(member) {
        return None;
    }
    Some(BackupTask { backup: backup.id, step: backup.step()? })
}

/// Whether a member that began at this time has not finished in time.
fn is_late(since: Timestamp, now: Timestamp) -> bool {
    now.duration_since(since) > BACKUP_WORK_LASTS
}

/// Returns the cluster whose backup was handed to a member; `None` if nothing changes. An event tells of the member that had the work before
/// and did not finish in time. If members have failed too often, the backup is given up instead.
pub fn begin_backup(
    cluster: &Cluster,
    task: BackupTask,
    member: &MemberName,
    now: Timestamp,
) -> Option<(Cluster, Vec<Event>)> {
    let mut begun = cluster.clone();
    let backup = begun.backups.iter_mut().find(|backup| backup.id == task.backup)?;
    if backup.work.as_ref().is_some_and(|it| it.member == *member && !is_late(it.since, now)) {
        return None;
    }
    let late = backup.work.as_ref().map(|work| failure(task, &work.member, NOT_IN_TIME));
    backup.begin(member, now);
    let failed = |said| Event::new(cluster.id, Severity::Warning, "BackupFailed", said, now);
    Some((begun, late.map(failed).into_iter().collect()))
}

/// Says that a member failed at a step of a backup.
fn failure(task: BackupTask, member: &MemberName, why: &str) -> String {
    let id = task.backup;
    match task.step {
        BackupStep::Save => format!("{member} could not take backup {id} of etcd: {why}"),
        BackupStep::Test => format!("{member} could not restore backup {id}: {why}"),
    }
}

/// Returns how long the member that works on a backup may still send a snapshot; `None`: not any more. The store has carried out the last write
/// when another member may get the work, or the object may be deleted.
pub fn transfer_time(backup: &Backup, now: Timestamp) -> Option<SignedDuration> {
    let worked = now.duration_since(backup.work.as_ref()?.since);
    let left = BACKUP_WORK_LASTS - LANDS_WITHIN - worked;
    left.is_positive().then_some(left)
}

/// The result of a member's work on a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BackupResult {
    Stored(BackupContents),
    /// The stored object was restored into an empty folder.
    Tested,
    /// The member failed, for this reason.
    Failed(String),
}

/// Records the result of a member's work, with an event. `None` if this work was not handed to this member.
pub fn finish_backup(
    cluster: &Cluster,
    backup: BackupUuid,
    member: &MemberName,
    result: BackupResult,
    now: Timestamp,
) -> Option<(Cluster, Event)> {
    let mut finished = cluster.clone();
    let backup = finished.backups.iter_mut().find(|it| it.id == backup)?;
    if !backup.is_worked_on_by(member) {
        return None;
    }
    if matches!(result, BackupResult::Failed(_)) {
        backup.failed_at = Some(now);
    }
    let id = backup.id;
    if backup.state == BackupState::Deleting {
        // The object goes as soon as nobody writes it any more.
        backup.work = None;
        let said = format!("{member} has stopped its work on backup {id}");
        let event = Event::new(cluster.id, Severity::Info, "BackupStopped", said, now);
        return Some((finished, event));
    }
    let (severity, reason, message) = match (backup.step()?, result) {
        (BackupStep::Save, BackupResult::Stored(contents)) => {
            let size = contents.size;
            backup.store(contents);
            let said = format!("{member} took backup {id} of etcd: {size} bytes");
            (Severity::Info, "BackupStored", said)
        }
        (BackupStep::Test, BackupResult::Tested) => {
            backup.pass(now);
            (Severity::Info, "BackupTested", format!("{member} restored backup {id} as a test"))
        }
        (step, BackupResult::Failed(why)) => {
            let said = failure(BackupTask { backup: id, step }, member, &why);
            backup.fail(why);
            (Severity::Warning, "BackupFailed", said)
        }
        (BackupStep::Save, BackupResult::Tested) | (BackupStep::Test, BackupResult::Stored(_)) => {
            return None;
        }
    };
    let event = Event::new(cluster.id, severity, reason, message, now);
    Some((finished, event))
}

/// Returns the cluster with a backup that a caller requested.
pub fn request_backup(
    cluster: &Cluster,
    id: BackupUuid,
    now: Timestamp,
) -> Result<Cluster, Refusal> {
    let busy = |why: String| Err(Refusal::Busy { why });
    if cluster.desire == DesiredState::Gone {
        return Err(Refusal::Deleting { name: cluster.name.to_string() });
    }
    if cluster.restore.is_some() {
        return busy(
            "the cluster is being restored; try again when its control plane is available"
                .to_owned(),
        );
    }
    if cluster.is_off() {
        return busy(
            "the lease of the cluster has ended and its servers are off; extend the lease first"
                .to_owned(),
        );
    }
    if cluster.completed_at.is_none() {
        return busy("the cluster is being created; try again when it is complete".to_owned());
    }
    let requested = |it: &&Backup| it.origin == BackupOrigin::Requested;
    let count = cluster.backups.iter().filter(requested).count();
    if count >= MOST_REQUESTED {
        return busy(format!(
            "the cluster has {count} requested backups, and {MOST_REQUESTED} is the limit: delete one first"
        ));
    }
    let mut asked = cluster.clone();
    asked.backups.push(Backup::new(id, BackupOrigin::Requested, now));
    Ok(asked)
}

/// Returns the cluster with a backup that is to be deleted; `None` if the cluster has no such backup.
pub fn delete_backup(cluster: &Cluster, id: BackupUuid) -> Result<Option<Cluster>, Refusal> {
    if cluster.restore.as_ref().is_some_and(|restore| restore.backup == id) {
        let why = "the cluster is being restored from this backup; try again when its control plane is available";
        return Err(Refusal::Busy { why: why.to_owned() });
    }
    let mut changed = cluster.clone();
    let Some(backup) = changed.backups.iter_mut().find(|backup| backup.id == id) else {
        return Ok(None);
    };
    backup.state = BackupState::Deleting;
    Ok(Some(changed))
}

/// Returns the backups whose objects the store has to delete now. An object that may still be on its way to the store waits.
pub fn backups_to_delete(cluster: &Cluster, now: Timestamp) -> Vec<BackupUuid> {
    let is_gone = cluster.desire == DesiredState::Gone;
    let is_over = |it: &Backup| matches!(it.state, BackupState::Failed | BackupState::Deleting);
    let is_idle = |it: &Backup| it.work.as_ref().is_none_or(|work| is_late(work.since, now));
    let may_land = |at: Timestamp| now.duration_since(at) <= LANDS_WITHIN;
    let arrives = |it: &Backup| it.failed_at.is_some_and(may_land);
    let due = cluster.backups.iter().filter(|it| it.has_object && is_idle(it) && !arrives(it));
    due.filter(|it| is_gone || is_over(it)).map(|it| it.id).collect()
}

impl Cluster {
    /// Returns the cluster after the store has deleted the objects of these backups.
    pub(crate) fn without_objects(mut self, gone: &[BackupUuid]) -> Cluster {
        for backup in self.backups.iter_mut().filter(|backup| gone.contains(&backup.id)) {
            (backup.has_object, backup.work) = (false, None);
        }
        let is_gone = self.desire == DesiredState::Gone;
        let stays = |it: &Backup| it.has_object || !(is_gone || it.state == BackupState::Deleting);
        self.backups.retain(stays);
        self
    }

    /// Returns the cluster with the backup that is due by the schedule, and without those that are no longer kept.
    pub(crate) fn with_scheduled_backups(
        mut self,
        schedule: &BackupSchedule,
        now: Timestamp,
    ) -> (Cluster, Vec<Event>) {
        let mut events = Vec::new();
        let Some(rules) = schedule.rules else { return (self, events) };
        if self.desire == DesiredState::Gone || self.restore.is_some() {
            return (self, events);
        }
        for backup in &mut self.backups {
            let waits = now.duration_since(idle_since(backup)) > WAITS_FOR;
            if backup.state == BackupState::Wanted && waits {
                let why = if backup.has_object { NOT_AGAIN } else { NEVER };
                backup.fail(why.to_owned());
                backup.state = BackupState::Failed;
                let said = format!("backup {} of etcd was given up: {why}", backup.id);
                events.push(Event::new(self.id, Severity::Warning, "BackupFailed", said, now));
            }
        }
        self.retire_backups(&rules, now);
        if is_due(&self, &rules, now) {
            let new = Backup::new(schedule.next_id, BackupOrigin::Scheduled, now);
            self.backups.push(new);
        }
        (self, events)
    }

    /// Marks the scheduled backups that are no longer kept. A failed one goes when a newer one was stored or scheduled.
    fn retire_backups(&mut self, rules: &BackupRules, now: Timestamp) {
        let newest = |is: fn(&Backup) -> bool| {
            let stored = self.backups.iter().filter(|it| it.is_stored() && is(it));
            stored.max_by_key(|it| it.requested_at).map(|it| (it.id, it.requested_at))
        };
        let (proven, stored) = (newest(|it| it.tested_at.is_some()), newest(|_| true));
        let of_schedule = |it: &&Backup| it.origin == BackupOrigin::Scheduled;
        let latest = self.backups.iter().filter(of_schedule).map(|it| it.requested_at).max();
        let mut scheduled: Vec<&mut Backup> = self
            .backups
            .iter_mut()
            .filter(|it| it.origin == BackupOrigin::Scheduled && it.is_stored())
            .collect();
        scheduled.sort_by_key(|it| std::cmp::Reverse(it.requested_at));
        for (place, backup) in scheduled.into_iter().enumerate() {
            let is_old = now.duration_since(backup.requested_at) > rules.keep_for;
            let is_proven = proven.is_some_and(|(id, _)| id == backup.id);
            if (place >= rules.keep || is_old) && !is_proven {
                backup.state = BackupState::Deleting;
            }
        }
        for backup in self.backups.iter_mut().filter(|it| it.state == BackupState::Failed) {
            let later = match backup.origin {
                BackupOrigin::Scheduled => latest,
                BackupOrigin::Requested => stored.map(|(_, at)| at),
            };
            if later.is_some_and(|at| at > backup.requested_at) {
                backup.state = BackupState::Deleting;
            }
        }
        self.backups.retain(|it| it.has_object || it.state != BackupState::Deleting);
    }
}

/// Why a backup was given up that no member took.
const NEVER: &str = "no control-plane member asked for it: members that were created by an older clusterd, or that got their config inline, \
                     cannot take backups";
/// Why a backup was given up at which members failed.
const NOT_AGAIN: &str =
    "members failed, and for an hour no control-plane member has asked for it again";

/// Returns since when no member works on a backup. A time in the future: a member may work on it until then.
fn idle_since(backup: &Backup) -> Timestamp {
    let ends =
        |work: &BackupWork| work.since.saturating_add(BACKUP_WORK_LASTS).unwrap_or(work.since);
    let ended = backup.work.as_ref().map(ends).max(backup.failed_at);
    ended.map_or(backup.requested_at, |at| at.max(backup.requested_at))
}

/// Whether a scheduled backup is due. The first one is due when the cluster is complete.
fn is_due(cluster: &Cluster, rules: &BackupRules, now: Timestamp) -> bool {
    let Some(every) = rules.every else { return false };
    let is_running = cluster.completed_at.is_some() && cluster.rest.is_none();
    let waits = cluster.backups.iter().any(|it| it.state == BackupState::Wanted);
    let scheduled = cluster.backups.iter().filter(|it| it.origin == BackupOrigin::Scheduled);
    let last = scheduled.max_by_key(|it| it.requested_at);
    let is_time = last.is_none_or(|last| {
        let has_failed = last.state == BackupState::Failed;
        let pause = if has_failed { every.min(AFTER_FAILURE) } else { every };
        now.duration_since(last.requested_at) >= pause
    });
    is_running && !waits && is_time
}

#[cfg(test)]
mod tests;
