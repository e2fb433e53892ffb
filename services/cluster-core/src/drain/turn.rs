//! The decisions of a turn of a drain.

use std::collections::BTreeSet;

use decision::{Decision, Requeue, time_left};
use jiff::{SignedDuration, Timestamp};

use super::{
    ComputeServiceState, Drain, DrainPhase, HostObservation, Member, MigrationAttempts, OwnServer,
    RemainingServer, ServerCondition, ServerOnHost, ServerOutcome, ServerOwner,
};
use crate::{Backoff, RecordChange, TurnPauses};

/// How many servers migrate away from a host at once. Nova migrates one after the other by default (`max_concurrent_live_migrations`); a
/// migration in its queue cannot be cancelled.
const MAX_MIGRATIONS: usize = 4;
/// After how many failed requests a server counts as one that does not migrate.
const MAX_ATTEMPTS: u32 = 3;

/// The times that rule a drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DrainRules {
    /// How long a requested migration may take to show in Nova; later the request counts as failed.
    pub shows_within: SignedDuration,
    /// The waiting time before the next request.
    pub backoff: Backoff,
    pub pauses: TurnPauses,
}

impl DrainRules {
    /// Two seconds: Nova records the migration before it answers the request.
    pub const SHOWS_WITHIN: SignedDuration = SignedDuration::from_secs(2);
}

/// An observation of the host of a drain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainObservation {
    Host(HostObservation),
    /// The cloud has no such host; with Nova's message.
    NoHost(String),
    /// The cloud does not answer.
    Unknown(String),
}

/// A call for a drain. Each may be repeated without harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainAction {
    /// Disable the compute service with this id, so that the scheduler places no more servers on the host.
    Disable { service: String },
    /// Enable the compute service again.
    Enable { service: String },
    /// Request the live migration of the server with this id; the scheduler chooses the host.
    Migrate(String),
    /// Cordon a worker's node and evict its pods, in a single pass.
    Evict(Member),
    /// Uncordon a worker's node.
    Uncordon(Member),
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainOutcome {
    /// The next observation shows the effect.
    Done,
    /// The call failed, and is repeated in a later turn.
    Failed(DrainAction),
    /// The cloud refused at once to move the server (the first text is its id) with this message.
    Refused(String, String),
    /// Every pod that can run elsewhere was evicted from the node.
    Emptied(Member),
    /// The node is uncordoned.
    Refilled(Member),
}

impl DrainOutcome {
    /// Whether the calls that follow in the same decision are skipped: servers must not leave a host on which the scheduler could place
    /// new ones.
    pub fn skips_rest(&self) -> bool {
        matches!(self, DrainOutcome::Failed(DrainAction::Disable { .. }))
    }
}

/// A decision of a turn of a drain.
type Planned<A = DrainAction> = Decision<RecordChange<Drain>, A>;

/// Decides the next calls of `drain`.
///
/// Pure: the same inputs always give the same decision.
pub fn plan_drain(drain: &Drain, seen: &DrainObservation, rules: &DrainRules) -> Planned {
    use DrainPhase::{Drained, Draining, Ending, Stuck};

    match (seen, drain.phase) {
        (DrainObservation::Host(host), Ending) => end(drain, host),
        (DrainObservation::Host(host), Draining | Drained | Stuck) => empty(drain, host, rules),
        // Nobody has to end the drain of a host that was removed from the cloud. A host that gets the name later is a new one.
        (DrainObservation::NoHost(_), Ending | Drained) => {
            Decision::write(RecordChange::Delete, Requeue::OnChange)
                .info("the host was removed from the cloud, so its drain is over")
        }
        (DrainObservation::NoHost(why), Draining | Stuck)
        | (DrainObservation::Unknown(why), Draining | Drained | Stuck | Ending) => {
            Decision::rest(Requeue::After(rules.pauses.look_every))
                .warn_of(why, "cannot observe the host")
        }
    }
}

/// Decides what follows from the calls of [`plan_drain`].
pub fn after_drain_actions<A>(
    drain: &Drain,
    outcomes: &[DrainOutcome],
    rules: &DrainRules,
) -> Planned<A> {
    let after = drain.with_outcomes(outcomes);
    let has_failed = outcomes.iter().any(|it| matches!(it, DrainOutcome::Failed(_)));
    let next_turn = match (drain.phase, has_failed) {
        (DrainPhase::Ending, false) => return over(),
        (DrainPhase::Ending, true) => Requeue::After(rules.pauses.soon),
        // The decision before has said when the next turn is due.
        (DrainPhase::Draining | DrainPhase::Drained | DrainPhase::Stuck, _) => Requeue::OnChange,
    };
    let change = (after != *drain).then_some(RecordChange::Write(after));
    Decision { change, ..Decision::rest(next_turn) }
}

/// Deletes the record: the drain is undone.
fn over<A>() -> Planned<A> {
    Decision::write(RecordChange::Delete, Requeue::OnChange).info("the host accepts servers again")
}

fn end(drain: &Drain, host: &HostObservation) -> Planned {
    let enable = (host.service == ComputeServiceState::DisabledByUs)
        .then(|| DrainAction::Enable { service: host.service_id.clone() });
    let refill = drain.cordoned.keys().cloned().map(DrainAction::Uncordon);
    let actions: Vec<DrainAction> = enable.into_iter().chain(refill).collect();
    if actions.is_empty() {
        return over();
    }
    let here = Drain { takes: host.members.clone(), ..drain.clone() };
    Decision { change: change(drain, here), actions, ..Decision::rest(Requeue::OnChange) }
}

/// Returns the change to `after`, unless nothing has changed.
fn change(before: &Drain, after: Drain) -> Option<RecordChange<Drain>> {
    // Each write repeats the quorum check, which is due in every turn while members are on a host that may be switched off, or are held.
    let has_members = before.phase == DrainPhase::Drained && !before.takes.is_empty();
    let is_weighed = has_members || !before.held.is_empty();
    (*before != after || is_weighed).then_some(RecordChange::Write(after))
}

fn empty(drain: &Drain, host: &HostObservation, rules: &DrainRules) -> Planned {
    let mut turn = EvictionTurn::new(drain, host, rules);
    for server in &host.servers {
        turn.look_at(server);
    }
    turn.decision(drain)
}

impl Drain {
    /// Returns the drain with the results of its calls.
    fn with_outcomes(&self, outcomes: &[DrainOutcome]) -> Drain {
        let mut after = self.clone();
        for outcome in outcomes {
            match outcome {
                DrainOutcome::Done | DrainOutcome::Failed(_) => {}
                DrainOutcome::Refused(server, why) => {
                    if let Some(attempt) = after.attempts.get_mut(server) {
                        attempt.failed += u32::from(attempt.is_open);
                        attempt.is_open = false;
                        attempt.why.clone_from(why);
                    }
                }
                DrainOutcome::Emptied(member) => {
                    after.cordoned.insert(member.clone(), true);
                }
                DrainOutcome::Refilled(member) => drop(after.cordoned.remove(member)),
            }
        }
        after
    }
}

/// A turn in which the host is emptied.
struct EvictionTurn<'a> {
    seen: &'a HostObservation,
    rules: &'a DrainRules,
    /// The members that the last quorum check has counted.
    known: &'a BTreeSet<Member>,
    drain: Drain,
    actions: Vec<DrainAction>,
    due: Option<Timestamp>,
    /// How many servers are migrating, or were requested to.
    moving: usize,
    fates: Vec<ServerOutcome>,
}

impl<'a> EvictionTurn<'a> {
    fn new(drain: &'a Drain, seen: &'a HostObservation, rules: &'a DrainRules) -> Self {
        let (known, takes) = (&drain.takes, seen.members.clone());
        let mut drain = Drain { takes, left: Vec::new(), foreign: 0, ..drain.clone() };
        let is_here = |id: &String| seen.servers.iter().any(|server| server.id == *id);
        drain.attempts.retain(|id, _| is_here(id));
        let disable = (seen.service == ComputeServiceState::Enabled)
            .then(|| DrainAction::Disable { service: seen.service_id.clone() });
        let moves = |server: &&ServerOnHost| server.condition == ServerCondition::Moves;
        let moving = seen.servers.iter().filter(moves).count();
        let actions = disable.into_iter().collect();
        EvictionTurn { seen, rules, known, drain, actions, due: None, moving, fates: Vec::new() }
    }

    fn look_at(&mut self, server: &ServerOnHost) {
        let (fate, why) = match &server.condition {
            ServerCondition::Moves => (ServerOutcome::Moves, String::new()),
            ServerCondition::Busy => (ServerOutcome::Waits, String::new()),
            ServerCondition::Off => (ServerOutcome::Off, "it is off".to_owned()),
            ServerCondition::Failed(why) => (ServerOutcome::Stays, why.clone()),
            ServerCondition::Runs => self.running(server),
        };
        self.fates.push(fate);
        match &server.carried {
            ServerOwner::Foreign => self.drain.foreign += 1,
            ServerOwner::Ours { what, .. } => self.drain.left.push(RemainingServer {
                server: server.id.clone(),
                name: server.name.clone(),
                what: what.clone(),
                fate,
                why,
            }),
        }
    }

    /// Decides about a server that runs on the host and is not migrating.
    fn running(&mut self, server: &ServerOnHost) -> (ServerOutcome, String) {
        if let Some(fate) = self.held(server) {
            return fate;
        }
        let now = self.seen.at;
        let before = self.drain.attempts.get(&server.id).cloned();
        let attempt = match before {
            Some(asked)
                if asked.is_open && now.duration_since(asked.at) < self.rules.shows_within =>
            {
                self.moving += 1;
                return (ServerOutcome::Moves, String::new());
            }
            Some(asked) if asked.is_open => {
                Some(MigrationAttempts { is_open: false, failed: asked.failed + 1, ..asked })
            }
            other => other,
        };
        if let Some(attempt) = &attempt {
            self.drain.attempts.insert(server.id.clone(), attempt.clone());
        }
        if let (Some(attempt), true) = (&attempt, self.is_emptied(server)) {
            return self.unmoved(server, attempt);
        }
        let due = attempt.as_ref().map(|it| self.rules.backoff.after(it.failed, it.at));
        if due.is_some_and(|due| due > now) {
            self.due = self.due.into_iter().chain(due).min();
        } else if self.moving < MAX_MIGRATIONS {
            self.moving += 1;
            let failed = attempt.as_ref().map_or(0, |it| it.failed);
            let asked = MigrationAttempts { at: now, is_open: true, failed, why: String::new() };
            self.drain.attempts.insert(server.id.clone(), asked);
            self.actions.push(DrainAction::Migrate(server.id.clone()));
            return (ServerOutcome::Moves, String::new());
        }
        match attempt {
            Some(attempt) if attempt.failed >= MAX_ATTEMPTS => self.unmoved(server, &attempt),
            Some(_) | None => (ServerOutcome::Waits, String::new()),
        }
    }

    /// Returns the fate of a control-plane member that came after the drain was granted, until the quorum check has passed with it.
    fn held(&self, server: &ServerOnHost) -> Option<(ServerOutcome, String)> {
        let ServerOwner::Ours { what: OwnServer::Member(member), is_worker: false } =
            &server.carried
        else {
            return None;
        };
        if self.drain.held.contains(member) {
            let why = self.drain.problem.clone().unwrap_or_default();
            return Some((ServerOutcome::Stays, why));
        }
        // The write of this turn repeats the check.
        (!self.known.contains(member)).then(|| (ServerOutcome::Waits, String::new()))
    }

    /// Whether the server is a worker whose pods were evicted.
    fn is_emptied(&self, server: &ServerOnHost) -> bool {
        match &server.carried {
            ServerOwner::Ours { what: OwnServer::Member(member), .. } => {
                self.drain.cordoned.get(member) == Some(&true)
            }
            ServerOwner::Ours { what: OwnServer::Vm(_), .. } | ServerOwner::Foreign => false,
        }
    }

    /// Decides about a server that failed to migrate often enough. The pods of a worker are evicted; the worker itself may stay.
    fn unmoved(
        &mut self,
        server: &ServerOnHost,
        attempt: &MigrationAttempts,
    ) -> (ServerOutcome, String) {
        let tried = if attempt.why.is_empty() {
            format!(
                "the cloud tried {} times to migrate it and failed: see `openstack server event list {}`",
                attempt.failed, server.id
            )
        } else {
            format!("the cloud refuses to migrate it: {}", attempt.why)
        };
        let ServerOwner::Ours { what: OwnServer::Member(member), is_worker: true } =
            &server.carried
        else {
            return (ServerOutcome::Stays, tried);
        };
        if self.drain.cordoned.get(member) == Some(&true) {
            return (ServerOutcome::Emptied, format!("{tried}; its pods were evicted"));
        }
        self.drain.cordoned.entry(member.clone()).or_insert(false);
        self.actions.push(DrainAction::Evict(member.clone()));
        (ServerOutcome::Waits, format!("{tried}; its pods are being evicted"))
    }

    /// Returns the decision. `before` is the drain before the turn.
    fn decision(mut self, before: &Drain) -> Planned {
        // A worker that migrated after all is uncordoned.
        let is_here = |member: &Member| {
            let is_it = |server: &ServerOnHost| {
                let what = OwnServer::Member(member.clone());
                matches!(&server.carried, ServerOwner::Ours { what: it, .. } if *it == what)
            };
            self.seen.servers.iter().any(is_it)
        };
        let moved = self.drain.cordoned.keys().filter(|member| !is_here(member));
        let refilled: Vec<DrainAction> = moved.cloned().map(DrainAction::Uncordon).collect();
        self.actions.extend(refilled);
        let any = |fate: ServerOutcome| self.fates.contains(&fate);
        let is_open = self.seen.service == ComputeServiceState::Enabled;
        self.drain.phase = if is_open || any(ServerOutcome::Moves) || any(ServerOutcome::Waits) {
            DrainPhase::Draining
        } else if any(ServerOutcome::Stays) {
            DrainPhase::Stuck
        } else {
            DrainPhase::Drained
        };
        let next_turn = self.next_turn();
        let EvictionTurn { drain, actions, .. } = self;
        Decision { change: change(before, drain), actions, ..Decision::rest(next_turn) }
    }

    /// Returns when the next turn is due: at the next attempt to move a server at the latest.
    fn next_turn(&self) -> Requeue {
        let TurnPauses { soon, look_every } = self.rules.pauses;
        let pause = match self.drain.phase {
            DrainPhase::Draining | DrainPhase::Ending => soon,
            DrainPhase::Drained | DrainPhase::Stuck => look_every,
        };
        let due = self.due.map(|due| time_left(due, self.seen.at));
        Requeue::After(due.map_or(pause, |due| due.min(pause)))
    }
}
