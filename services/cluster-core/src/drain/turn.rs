//! Decides the next steps of a drain.

use jiff::{SignedDuration, Timestamp};

use super::{
    ComputeServiceState, Drain, DrainPhase, HostObservation, Member, MigrationAttempts, OwnServer,
    RemainingServer, ServerCondition, ServerOnHost, ServerOutcome, ServerOwner,
};
use crate::Backoff;

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
}

impl DrainRules {
    /// Two seconds: Nova records the migration before it answers the request.
    pub const DEFAULT: DrainRules =
        DrainRules { shows_within: SignedDuration::from_secs(2), backoff: Backoff::DEFAULT };
}

/// Something to do for a drain. Each step may be performed twice without harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainStep {
    /// Disable the compute service, so that the scheduler places no more servers on the host.
    Disable,
    /// Enable the compute service again.
    Enable,
    /// Request the live migration of the server with this id; the scheduler chooses the host.
    Migrate(String),
    /// Cordon a worker's node and evict its pods, in a single pass.
    Evict(Member),
    /// Uncordon a worker's node.
    Uncordon(Member),
}

/// The result of a drain's turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DrainDecision {
    /// The drain, to be recorded before a step is performed.
    pub drain: Drain,
    /// To be performed in this order.
    pub steps: Vec<DrainStep>,
    /// When the next turn is due though no event announces it; `None`: at the next regular observation.
    pub due: Option<Timestamp>,
    /// Whether the record may be deleted once the steps are performed.
    pub is_over: bool,
}

/// Decides the next steps of `drain`, given an observation of its host.
///
/// Pure: the same inputs always give the same steps.
pub fn drain_turn(drain: &Drain, seen: &HostObservation, rules: &DrainRules) -> DrainDecision {
    match drain.phase {
        DrainPhase::Ending => end(drain, seen),
        DrainPhase::Draining | DrainPhase::Drained | DrainPhase::Stuck => empty(drain, seen, rules),
    }
}

fn end(drain: &Drain, seen: &HostObservation) -> DrainDecision {
    let enable = (seen.service == ComputeServiceState::DisabledByUs).then_some(DrainStep::Enable);
    let refill = drain.cordoned.keys().cloned().map(DrainStep::Uncordon);
    let steps = enable.into_iter().chain(refill).collect();
    DrainDecision { drain: drain.clone(), steps, due: None, is_over: true }
}

fn empty(drain: &Drain, seen: &HostObservation, rules: &DrainRules) -> DrainDecision {
    let mut turn = EvictionTurn::new(drain, seen, rules);
    for server in &seen.servers {
        turn.look_at(server);
    }
    turn.concluded()
}

/// A turn in which the host is emptied.
struct EvictionTurn<'a> {
    seen: &'a HostObservation,
    rules: &'a DrainRules,
    drain: Drain,
    steps: Vec<DrainStep>,
    due: Option<Timestamp>,
    /// How many servers are migrating, or were requested to.
    moving: usize,
    fates: Vec<ServerOutcome>,
}

impl<'a> EvictionTurn<'a> {
    fn new(drain: &Drain, seen: &'a HostObservation, rules: &'a DrainRules) -> Self {
        let mut drain = drain.clone();
        (drain.left, drain.foreign) = (Vec::new(), 0);
        let is_here = |id: &String| seen.servers.iter().any(|server| server.id == *id);
        drain.attempts.retain(|id, _| is_here(id));
        let disable = (seen.service == ComputeServiceState::Enabled).then_some(DrainStep::Disable);
        let moves = |server: &&ServerOnHost| server.condition == ServerCondition::Moves;
        let moving = seen.servers.iter().filter(moves).count();
        let steps = disable.into_iter().collect();
        EvictionTurn { seen, rules, drain, steps, due: None, moving, fates: Vec::new() }
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
            self.steps.push(DrainStep::Migrate(server.id.clone()));
            return (ServerOutcome::Moves, String::new());
        }
        match attempt {
            Some(attempt) if attempt.failed >= MAX_ATTEMPTS => self.unmoved(server, &attempt),
            Some(_) | None => (ServerOutcome::Waits, String::new()),
        }
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
        self.steps.push(DrainStep::Evict(member.clone()));
        (ServerOutcome::Waits, format!("{tried}; its pods are being evicted"))
    }

    fn concluded(mut self) -> DrainDecision {
        // A worker that migrated after all is uncordoned.
        let is_here = |member: &Member| {
            let is_it = |server: &ServerOnHost| {
                let what = OwnServer::Member(member.clone());
                matches!(&server.carried, ServerOwner::Ours { what: it, .. } if *it == what)
            };
            self.seen.servers.iter().any(is_it)
        };
        let moved = self.drain.cordoned.keys().filter(|member| !is_here(member));
        let refilled: Vec<DrainStep> = moved.cloned().map(DrainStep::Uncordon).collect();
        self.steps.extend(refilled);
        let any = |fate: ServerOutcome| self.fates.contains(&fate);
        let is_open = self.steps.contains(&DrainStep::Disable);
        self.drain.phase = if is_open || any(ServerOutcome::Moves) || any(ServerOutcome::Waits) {
            DrainPhase::Draining
        } else if any(ServerOutcome::Stays) {
            DrainPhase::Stuck
        } else {
            DrainPhase::Drained
        };
        DrainDecision { drain: self.drain, steps: self.steps, due: self.due, is_over: false }
    }
}
