//! The decisions of a turn of a cluster.

use std::collections::BTreeSet;
use std::time::Duration;

use ::lease::{Due, LeaseSchedule, LeaseStage};
use decision::{Decision, Requeue, time_left};
use jiff::Timestamp;

use crate::restore_plan::restore_after;
use crate::roll_step::{RollChanged, RollStep, roll_step};
use crate::{
    BackupSchedule, BackupUuid, Cluster, ClusterObservation, ClusterSpec, Condition,
    ConditionStatus, DesiredState, Event, LeaseNotice, LedgerEntry, MemberName, NodeGroup, Problem,
    ProjectObservation, RecordChange, RepairLimits, Roll, Severity, TurnPauses, after_lease_stage,
    backups_to_delete, lease_due, lease_notice, members_to_replace, off_problem,
};

/// How often to look while servers are being switched on or off.
const SWITCHING_EVERY: Duration = Duration::from_secs(2);
/// How soon a cluster has its next turn when it was changed during this one.
const AFTER_CHANGE: Duration = Duration::from_millis(100);

/// The records that a turn of a cluster reads.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterRecords {
    pub cluster: Cluster,
    pub groups: Vec<NodeGroup>,
    /// The cloud objects of the cluster.
    pub ledger: Vec<LedgerEntry>,
    /// The members that drains of hosts take out.
    pub drained: BTreeSet<MemberName>,
}

/// The change of a cluster, with everything that is written in the same transaction.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterUpdate {
    pub cluster: Cluster,
    pub groups: Vec<NodeGroup>,
    pub events: Vec<Event>,
    /// The notice about the stage of the lease that was taken.
    pub notice: Option<LeaseNotice>,
}

/// The work of a turn outside of the database. All of it may be repeated without harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterAction {
    /// Switch on the servers of a cluster whose lease was extended after its end.
    SwitchOn,
    /// Switch off the servers of a cluster whose lease ended.
    SwitchOff,
    /// Bring the cloud as close to the desired objects as is possible now, and observe them.
    ReconcileObjects,
    /// Delete the objects of backups that are no longer kept, or whose cluster is to be deleted.
    DeleteBackups,
}

/// The result of an action.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusterOutcome {
    /// Nova was asked to switch on the servers. The observation shows the effect.
    SwitchedOn,
    SwitchedOff {
        /// How many servers are still on.
        still_on: usize,
    },
    /// Why the servers were not switched off.
    SwitchOffFailed(String),
    Reconciled(Box<ClusterWork>),
    /// The backups of which the store has no object any more.
    BackupsDeleted(Vec<BackupUuid>),
    /// Another writer changed the cluster, so the work was given up.
    Changed,
}

/// The result of the work on the cloud objects of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterWork {
    pub seen: ClusterObservation,
    /// When the next turn is due for the objects.
    pub next_turn: Requeue,
}

/// The settings that decide the turns of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct ClusterRules<'a> {
    /// When the stages of a lease are due.
    pub schedule: &'a LeaseSchedule,
    /// When members are replaced.
    pub repair: &'a RepairLimits,
    pub pauses: TurnPauses,
    /// When backups are made, and how many are kept.
    pub backups: BackupSchedule,
    /// Whether no program of version 0.1.0 reads the records any more.
    pub is_upgraded: bool,
}

/// A decision of a turn of a cluster.
type Planned<A = ClusterAction> = Decision<RecordChange<ClusterUpdate>, A>;

/// Decides the first step of a turn.
///
/// Pure: the same inputs always give the same decision.
pub fn plan_cluster(
    records: &ClusterRecords,
    project: &ProjectObservation,
    rules: &ClusterRules<'_>,
    now: Timestamp,
) -> Planned {
    let cluster = &records.cluster;
    if records.is_over() {
        return Decision::write(RecordChange::Delete, Requeue::OnChange);
    }
    if records.owns_only_backups() {
        let due = Requeue::After(rules.pauses.look_every);
        return Decision { actions: vec![ClusterAction::DeleteBackups], ..Decision::rest(due) };
    }
    if let Due::Now(stage) = lease_due(cluster, rules.schedule, now) {
        return take_stage(cluster, stage, now);
    }
    match project {
        ProjectObservation::NoCloud => {
            let next_turn = Requeue::After(rules.pauses.look_every);
            conclude((records, &[]), &without_observation(no_cloud()), next_turn, rules, now)
        }
        // The project is recorded before anything is created in it.
        ProjectObservation::New(project) => {
            let placed = Cluster { cloud_project: Some(project.clone()), ..cluster.clone() };
            let line = format!("cluster {} uses project {project} of the cloud", cluster.id);
            let change = Some(RecordChange::Write(ClusterUpdate::of(placed)));
            Decision { change, ..work(cluster, now) }.info(line)
        }
        // The work reports why the project cannot be determined.
        ProjectObservation::Recorded | ProjectObservation::Unknown(_) => work(cluster, now),
    }
}

/// Decides what follows from the actions of [`plan_cluster`].
pub fn after_cluster_actions<A>(
    records: &ClusterRecords,
    outcomes: &[ClusterOutcome],
    rules: &ClusterRules<'_>,
    now: Timestamp,
) -> Planned<A> {
    let TurnPauses { soon, look_every } = rules.pauses;
    let gone = deleted_backups(outcomes);
    let off = |problem, pause| {
        let seen = without_observation(problem);
        conclude((records, gone), &seen, Requeue::After(pause), rules, now)
    };
    let off_problem = |still_on| off_problem(&records.cluster, rules.schedule, still_on);
    // The last action is the one that observes.
    match outcomes.last() {
        Some(ClusterOutcome::Reconciled(work)) => {
            conclude((records, gone), &work.seen, work.next_turn, rules, now)
        }
        Some(ClusterOutcome::SwitchedOff { still_on: 0 }) => off(off_problem(0), look_every),
        Some(ClusterOutcome::SwitchedOff { still_on }) => {
            off(off_problem(*still_on), SWITCHING_EVERY.min(look_every))
        }
        Some(ClusterOutcome::SwitchOffFailed(why)) => {
            let message = format!("the lease has ended: {why}");
            off(Problem { message, ..off_problem(0) }, look_every)
        }
        Some(ClusterOutcome::BackupsDeleted(gone)) if gone.is_empty() => {
            Decision::rest(Requeue::After(look_every))
        }
        Some(ClusterOutcome::BackupsDeleted(gone)) => {
            let cluster = records.cluster.clone().without_objects(gone);
            Decision::write(RecordChange::Write(ClusterUpdate::of(cluster)), Requeue::Now)
        }
        Some(ClusterOutcome::Changed) => {
            Decision::rest(Requeue::After(AFTER_CHANGE.min(look_every)))
        }
        Some(ClusterOutcome::SwitchedOn) | None => Decision::rest(Requeue::After(soon)),
    }
}

impl ClusterRecords {
    /// Whether the cluster is to be deleted, and owns nothing any more: neither in the cloud nor in the store of backups.
    pub fn is_over(&self) -> bool {
        let has_backups = self.cluster.backups.iter().any(|backup| backup.has_object);
        self.owns_nothing_in_the_cloud() && !has_backups
    }

    /// Whether the cluster is to be deleted, and only the store of backups has something of it.
    fn owns_only_backups(&self) -> bool {
        self.owns_nothing_in_the_cloud() && !self.is_over()
    }

    fn owns_nothing_in_the_cloud(&self) -> bool {
        self.cluster.desire == DesiredState::Gone && self.ledger.is_empty()
    }
}

impl ClusterUpdate {
    /// Makes an update of the cluster's record alone.
    fn of(cluster: Cluster) -> ClusterUpdate {
        ClusterUpdate { cluster, groups: Vec::new(), events: Vec::new(), notice: None }
    }
}

/// Takes a stage of the lease. The next turn acts on it.
fn take_stage(cluster: &Cluster, stage: LeaseStage, now: Timestamp) -> Planned {
    let notice = lease_notice(stage);
    let event = event(cluster, notice.severity, notice.reason, notice.message.clone(), now);
    let taken = after_lease_stage(cluster, stage, now);
    let update =
        ClusterUpdate { events: vec![event], notice: Some(notice), ..ClusterUpdate::of(taken) };
    Decision::write(RecordChange::Write(update), Requeue::Now)
}

/// Starts the work on the cluster's servers and other objects.
fn work(cluster: &Cluster, now: Timestamp) -> Planned {
    let mut actions = if cluster.is_off() {
        vec![ClusterAction::SwitchOff]
    } else if cluster.waking_since().is_some() {
        vec![ClusterAction::SwitchOn, ClusterAction::ReconcileObjects]
    } else {
        vec![ClusterAction::ReconcileObjects]
    };
    if !backups_to_delete(cluster, now).is_empty() {
        actions.insert(0, ClusterAction::DeleteBackups);
    }
    Decision { actions, ..Decision::rest(Requeue::OnChange) }
}

/// Returns the backups of which the store has no object any more.
fn deleted_backups(outcomes: &[ClusterOutcome]) -> &[BackupUuid] {
    let deleted = outcomes.iter().find_map(|outcome| match outcome {
        ClusterOutcome::BackupsDeleted(gone) => Some(gone.as_slice()),
        ClusterOutcome::SwitchedOn
        | ClusterOutcome::SwitchedOff { .. }
        | ClusterOutcome::SwitchOffFailed(_)
        | ClusterOutcome::Reconciled(_)
        | ClusterOutcome::Changed => None,
    });
    deleted.unwrap_or_default()
}

/// Applies an observation to the record. `next_turn` is due for what was observed, and `gone` are the backups of which the store has no
/// object any more.
fn conclude<A>(
    (records, gone): (&ClusterRecords, &[BackupUuid]),
    seen: &ClusterObservation,
    next_turn: Requeue,
    rules: &ClusterRules<'_>,
    now: Timestamp,
) -> Planned<A> {
    let ClusterRecords { cluster, groups, drained, ledger } = records;
    let seen = ClusterObservation { drained: drained.clone(), ..seen.clone() };
    let mut concluded = cluster.with_observation(groups, &seen, now).without_objects(gone);
    concluded.conditions.retain(|it| rules.is_upgraded || it.kind.is_known_to_0_1());
    let (concluded, said) = concluded.with_scheduled_backups(&rules.backups, now);
    let (restore, restored) = restore_after(cluster, groups, (&seen, ledger), rules.repair, now);
    let restores = cluster.restores + u32::from(cluster.restore.is_some() && restore.is_none());
    let concluded = Cluster { restore, restores, ..concluded };
    let next_turn = if concluded.restore == cluster.restore { next_turn } else { Requeue::Now };
    let said: Vec<Event> = said.into_iter().chain(restored).collect();
    let spec = ClusterSpec { cluster, groups };
    let replaced = members_to_replace(&spec, &seen, rules.repair, now);
    if !replaced.is_empty() {
        let lines = replaced.iter().map(|machine| format!("replacing member {machine}"));
        let events = [events(cluster, &concluded, &replaced, now), said].concat();
        let groups = replace(groups, &replaced);
        let update = ClusterUpdate { groups, events, ..ClusterUpdate::of(concluded) };
        let decision = Decision::write(RecordChange::Write(update), Requeue::Now);
        return lines.fold(decision, Decision::info);
    }
    let step = roll_step(&ClusterSpec { cluster: &concluded, groups }, &seen);
    let concluded = match step {
        Some(RollStep::Change(changed)) => return roll(cluster, *changed, said, now),
        Some(RollStep::Wait(why)) => waiting(concluded, why),
        None => concluded,
    };
    let next_turn = no_later(next_turn, cluster, rules.schedule, now);
    if concluded == *cluster {
        return Decision::rest(next_turn);
    }
    let events = [events(cluster, &concluded, &[], now), said].concat();
    let update = ClusterUpdate { events, ..ClusterUpdate::of(concluded) };
    Decision::write(RecordChange::Write(update), next_turn)
}

/// Writes a step of a roll, with the other events of the turn. The next turn acts on it.
fn roll<A>(before: &Cluster, changed: RollChanged, said: Vec<Event>, now: Timestamp) -> Planned<A> {
    let RollChanged { cluster, groups, event: (reason, message) } = changed;
    let mut events = [events(before, &cluster, &[], now), said].concat();
    events.push(event(before, Severity::Info, reason, message.clone(), now));
    let update = ClusterUpdate { groups, events, ..ClusterUpdate::of(cluster) };
    Decision::write(RecordChange::Write(update), Requeue::Now).info(message)
}

/// Returns the cluster with the reason for which its roll waits.
fn waiting(cluster: Cluster, why: String) -> Cluster {
    let roll = cluster.roll.clone().map(|roll| Roll { waits_for: Some(why), ..roll });
    Cluster { roll, ..cluster }
}

/// Returns when the next turn is due: at the next stage of the lease at the latest, and soon while servers are starting.
fn no_later(
    next_turn: Requeue,
    cluster: &Cluster,
    schedule: &LeaseSchedule,
    now: Timestamp,
) -> Requeue {
    let Requeue::After(pause) = next_turn else { return next_turn };
    let due = match lease_due(cluster, schedule, now) {
        Due::Now(_) => Some(Duration::ZERO),
        Due::At(at) => Some(time_left(at, now)),
        Due::Nothing => None,
    };
    let waking = cluster.waking_since().map(|_| SWITCHING_EVERY);
    Requeue::After(due.into_iter().chain(waking).fold(pause, Duration::min))
}

/// Returns the groups that change when these members are replaced by new ones.
fn replace(groups: &[NodeGroup], replaced: &[MemberName]) -> Vec<NodeGroup> {
    let mut changed = Vec::new();
    for group in groups {
        let mut new = group.clone();
        for machine in replaced.iter().filter(|machine| machine.group == group.name) {
            new.replace_machine(machine.number);
        }
        if new != *group {
            changed.push(new);
        }
    }
    changed
}

/// Returns the events of a turn: changed conditions and replaced members.
fn events(before: &Cluster, after: &Cluster, replaced: &[MemberName], at: Timestamp) -> Vec<Event> {
    let known = |new: &&Condition| {
        let old = before.conditions.iter().find(|old| old.kind == new.kind);
        old.is_some_and(|old| old.status == new.status && old.reason == new.reason)
    };
    let reported = after.conditions.iter().filter(|new| !known(new)).map(|new| {
        let severity = if new.is_final { Severity::Error } else { Severity::Info };
        let message = match new.status {
            ConditionStatus::True => format!("{} is true", new.kind.as_str()),
            ConditionStatus::False | ConditionStatus::Unknown => {
                format!("{}: {}", new.kind.as_str(), new.message)
            }
        };
        event(before, severity, &new.reason, message, at)
    });
    let gone = replaced.iter().map(|machine| {
        let message = format!("{machine} did not recover and is replaced by a new member");
        event(before, Severity::Warning, "MachineReplaced", message, at)
    });
    reported.chain(gone).collect()
}

fn event(of: &Cluster, severity: Severity, reason: &str, message: String, at: Timestamp) -> Event {
    Event::new(of.id, severity, reason, message, at)
}

fn without_observation(problem: Problem) -> ClusterObservation {
    ClusterObservation { problem: Some(problem), ..ClusterObservation::default() }
}

/// Returns the problem of a cluster when clusterd has no cloud.
fn no_cloud() -> Problem {
    Problem {
        reason: "NoCloud".to_owned(),
        message: "clusterd has no cloud configured, so nothing was created".to_owned(),
        next_action: "delete the cluster, or configure a cloud for clusterd".to_owned(),
        is_final: false,
    }
}

#[cfg(test)]
mod tests;
