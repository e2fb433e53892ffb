//! Drains of compute hosts: the record of each, and the members that it takes out.
//!
//! `admit_drain` decides whether a drain may start, before anything moves; `plan_drain` carries it out turn by turn.

mod host;
mod quorum;
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use trace_context::TraceContext;

use crate::{ClusterUuid, DrainUuid, MemberName, VmUuid};

pub use host::{ComputeServiceState, HostObservation, ServerCondition, ServerOnHost, ServerOwner};
pub use quorum::{DrainRefused, EtcdQuorum, QuorumLost, admit_drain};
pub use turn::{
    DrainAction, DrainObservation, DrainOutcome, DrainRules, after_drain_actions, plan_drain,
};

/// The name of a compute host, as Nova writes it in `OS-EXT-SRV-ATTR:host`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

/// The text cannot be the name of a host, or cannot be a segment of a URL's path.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{raw:?} is not a host name: use 1 to 255 letters, digits, '-', '.' and '_', and more than dots"
)]
pub struct InvalidHostName {
    /// The text that was given, cut to 64 characters so that it fits in a message.
    pub raw: String,
}

/// A member of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Member {
    pub cluster: ClusterUuid,
    pub machine: MemberName,
}

/// The drain of a host, from the request until the host accepts servers again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    pub id: DrainUuid,
    pub host: HostName,
    /// Counts the changes; an update names the version it read, so that no change is lost.
    pub version: i64,
    pub asked_at: Timestamp,
    pub asked_by: String,
    /// The id of that request. The conductor's calls to the cloud carry the id, so that they can be traced back to it.
    pub request: Option<String>,
    /// The trace of the request that asked for what is in progress, recorded with the intent: the turns after a restart continue the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<TraceContext>,
    /// The clusters that may lose their etcd quorum, because the request named them.
    pub forced: BTreeSet<ClusterUuid>,
    /// The members of clusters that were on the host at the last observation.
    #[serde(skip)]
    pub takes: BTreeSet<Member>,
    /// The members of etcd that came to the host after the drain was granted, and without which their cluster would lose its quorum. They do
    /// not move until the cluster can spare them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub held: BTreeSet<Member>,
    pub phase: DrainPhase,
    /// Servers of clusterd that are still on the host.
    pub left: Vec<RemainingServer>,
    /// How many servers are still on the host that do not belong to clusterd.
    pub foreign: u32,
    /// The attempts to move each server, by its id in the cloud.
    pub attempts: BTreeMap<String, MigrationAttempts>,
    /// The workers that do not move, whose nodes are cordoned. True once every pod that can run elsewhere was evicted.
    #[serde(with = "pairs")]
    pub cordoned: BTreeMap<Member, bool>,
    /// Why the drain makes no progress, when the reason is known.
    pub problem: Option<String>,
}

words::words! {
    /// How far a drain is, in the words of the API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum DrainPhase {
        /// Servers are moving, or are about to.
        Draining = "draining",
        /// Only servers that are off and nodes without pods are left: the host may be switched off.
        Drained = "drained",
        /// A running server does not move, or a cluster would lose its quorum because of a member that came to the host later.
        Stuck = "stuck",
        /// The drain is being undone: the host accepts servers again.
        Ending = "ending",
    }
}

/// A server of clusterd that is still on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemainingServer {
    /// The id of the server in the cloud.
    pub server: String,
    pub name: String,
    pub what: OwnServer,
    pub fate: ServerOutcome,
    /// Why the server stays, for people; empty when it does not stay.
    pub why: String,
}

/// The cluster member or VM that a server is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OwnServer {
    Member(Member),
    Vm(VmUuid),
}

words::words! {
    /// The outcome of a drain for one server on the host, in the words of the API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ServerOutcome {
        /// Migrates after other servers.
        Waits = "waits",
        /// Migrates now.
        Moves = "moves",
        /// Stays on the host, switched off.
        Off = "off",
        /// Stays on the host: a worker whose pods were evicted.
        Emptied = "emptied",
        /// Stays on the host, running.
        Stays = "stays",
    }
}

/// The attempts to move one server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationAttempts {
    /// When the last migration was requested.
    pub at: Timestamp,
    /// Whether the outcome of the last request is not known yet.
    pub is_open: bool,
    /// How many requests failed.
    pub failed: u32,
    /// The cloud's message, when it refused the request at once.
    pub why: String,
}

impl Drain {
    /// Makes the record of a new drain.
    pub fn new(
        (id, host): (DrainUuid, HostName),
        (asked_by, request): (String, Option<String>),
        forced: BTreeSet<ClusterUuid>,
        takes: BTreeSet<Member>,
        now: Timestamp,
    ) -> Self {
        Drain {
            id,
            host,
            version: 1,
            asked_at: now,
            asked_by,
            request,
            trace: None,
            forced,
            takes,
            held: BTreeSet::new(),
            phase: DrainPhase::Draining,
            left: Vec::new(),
            foreign: 0,
            attempts: BTreeMap::new(),
            cordoned: BTreeMap::new(),
            problem: None,
        }
    }

    /// Returns the trace of the request, until the host is drained.
    pub fn trace_in_progress(&self) -> Option<&TraceContext> {
        let is_in_progress = match self.phase {
            DrainPhase::Draining | DrainPhase::Ending => true,
            DrainPhase::Drained | DrainPhase::Stuck => false,
        };
        self.trace.as_ref().filter(|_| is_in_progress)
    }

    /// Returns the drain after a second request for the same host: `forced` is extended, the attempts are kept. The second request is granted
    /// for all members on the host.
    pub fn asked_again(&self, other: &Drain) -> Drain {
        let forced = self.forced.union(&other.forced).copied().collect();
        let phase = match self.phase {
            DrainPhase::Ending => DrainPhase::Draining,
            DrainPhase::Draining | DrainPhase::Drained | DrainPhase::Stuck => self.phase,
        };
        Drain { forced, phase, takes: other.takes.clone(), held: BTreeSet::new(), ..self.clone() }
    }
}

impl HostName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = InvalidHostName;

    /// Follows Nova's own schema for host names (`nova/api/validation/parameter_types.py`, `hostname`), and refuses names that RFC 3986 §5.2.4
    /// takes out of a path.
    fn from_str(raw: &str) -> Result<Self, InvalidHostName> {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        let is_named = raw.chars().any(|c| c != '.');
        if !is_named || raw.len() > 255 || !raw.chars().all(legal) {
            return Err(InvalidHostName { raw: raw.chars().take(64).collect() });
        }
        Ok(HostName(raw.to_owned()))
    }
}

words::strings!(HostName);

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Writes a map as a JSON list of pairs, because JSON allows only strings as keys of objects.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serializer};

    use super::Member;

    pub(super) fn serialize<S: Serializer>(
        map: &BTreeMap<Member, bool>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(map)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<Member, bool>, D::Error> {
        Ok(Vec::<(Member, bool)>::deserialize(deserializer)?.into_iter().collect())
    }
}

#[cfg(test)]
mod tests;
