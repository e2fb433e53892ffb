//! Hosts that are taken out: what is recorded of each, and whose machines it takes out.
//!
//! A drain is granted before anything moves (`admit_drain`), then carried out turn by turn (`drain_turn`).

mod admit;
mod host;
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{ClusterUuid, DrainUuid, MachineRef, VmUuid};

pub use admit::{DrainRefused, Quorum, QuorumLost, admit_drain};
pub use host::{Carried, HostSeen, ServerCondition, ServerOnHost, ServiceSeen};
pub use turn::{DrainRules, DrainStep, DrainTurned, drain_turn};

/// The name of a compute host, as Nova writes it: `OS-EXT-SRV-ATTR:host`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);

/// The text cannot be the name of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{raw:?} cannot be a host's name: it must have 1 to 255 letters, digits, '-', '.' and '_'")]
pub struct InvalidHostName {
    /// What was given, cut to a length fit for a message.
    pub raw: String,
}

/// One machine of one cluster.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Member {
    /// The cluster.
    pub cluster: ClusterUuid,
    /// Its machine.
    pub machine: MachineRef,
}

/// A host that is to be empty, or was until a moment ago.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Drain {
    /// Its id.
    pub id: DrainUuid,
    /// Which.
    pub host: HostName,
    /// Counts its changes.
    pub version: i64,
    /// When it was asked for.
    pub asked_at: Timestamp,
    /// Who asked for it.
    pub asked_by: String,
    /// The id of the request that did: what is done of it since is done on behalf of it.
    pub request: Option<String>,
    /// The clusters that may lose their quorum by it, for somebody named them.
    pub forced: BTreeSet<ClusterUuid>,
    /// The machines of clusters that it takes out: those that were on the host when it was last looked at.
    #[serde(skip)]
    pub takes: BTreeSet<Member>,
    /// How far it is.
    pub phase: DrainPhase,
    /// What is still on the host, but for what is others'.
    pub left: Vec<Left>,
    /// How many servers are still on the host that clusterd knows nothing of.
    pub foreign: u32,
    /// How often each server was asked to move, by its id in the cloud.
    pub attempts: BTreeMap<String, Attempt>,
    /// The workers that do not move, whose nodes were told to take no more pods; and whether all went that can go elsewhere.
    #[serde(with = "pairs")]
    pub cordoned: BTreeMap<Member, bool>,
    /// Why it does not go on, where somebody knows.
    pub problem: Option<String>,
}

/// How far a drain is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DrainPhase {
    /// Something moves, or is to.
    Draining,
    /// Nothing that runs is left on the host but nodes without pods: it may be switched off.
    Drained,
    /// Something that runs does not move, or a cluster would lose its quorum by what came to the host since.
    Stuck,
    /// It is over: the host is to take servers again.
    Ending,
}

/// A server that is still on the host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Left {
    /// Its id in the cloud.
    pub server: String,
    /// Its name there.
    pub name: String,
    /// What it is.
    pub what: Known,
    /// What becomes of it.
    pub fate: Fate,
    /// Why it stays, for people; empty where it does not.
    pub why: String,
}

/// What of clusterd's a server is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Known {
    /// A machine of a cluster.
    Member(Member),
    /// A person's own machine.
    Vm(VmUuid),
}

/// What becomes of a server on a host that is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Fate {
    /// It is to move, when others have.
    Waits,
    /// It moves.
    Moves,
    /// It does not run, and stays.
    Off,
    /// It is a node without pods, and stays.
    Emptied,
    /// It runs, and does not move.
    Stays,
}

/// What came of asking a server to move.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// When it was last asked.
    pub at: Timestamp,
    /// Whether it is not known yet what came of that.
    pub is_open: bool,
    /// How often it was asked in vain.
    pub failed: u32,
    /// Why, in the cloud's words, where it said so at once.
    pub why: String,
}

impl DrainPhase {
    /// One word.
    pub fn as_str(self) -> &'static str {
        match self {
            DrainPhase::Draining => "draining",
            DrainPhase::Drained => "drained",
            DrainPhase::Stuck => "stuck",
            DrainPhase::Ending => "ending",
        }
    }
}

impl Fate {
    /// One word.
    pub fn as_str(self) -> &'static str {
        match self {
            Fate::Waits => "waits",
            Fate::Moves => "moves",
            Fate::Off => "off",
            Fate::Emptied => "emptied",
            Fate::Stays => "stays",
        }
    }
}

impl Drain {
    /// A drain that was just asked for.
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
            forced,
            takes,
            phase: DrainPhase::Draining,
            left: Vec::new(),
            foreign: 0,
            attempts: BTreeMap::new(),
            cordoned: BTreeMap::new(),
            problem: None,
        }
    }

    /// The same drain asked for again: what it may break besides is added, and what moved or did not is known.
    pub fn asked_again(&self, other: &Drain) -> Drain {
        let forced = self.forced.union(&other.forced).copied().collect();
        let phase = match self.phase {
            DrainPhase::Ending => DrainPhase::Draining,
            DrainPhase::Draining | DrainPhase::Drained | DrainPhase::Stuck => self.phase,
        };
        Drain { forced, phase, takes: other.takes.clone(), ..self.clone() }
    }
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainOutcome {
    /// The cloud said at once that it does not move this server, and why.
    Refused(String, String),
    /// The node has no pods left that can go elsewhere.
    Emptied(Member),
    /// The node takes pods again.
    Refilled(Member),
}

impl Drain {
    /// The drain with what came of its steps.
    pub fn after(&self, outcomes: &[DrainOutcome]) -> Drain {
        let mut after = self.clone();
        for outcome in outcomes {
            match outcome {
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

    /// The drain with what was decided of what it takes by now: the host stays while a quorum hangs on it.
    pub fn judged(&self, weighed: Result<(), DrainRefused>) -> Drain {
        let problem = weighed.err().map(|refused| refused.to_string());
        let stays = self.phase == DrainPhase::Drained && problem.is_some();
        let phase = if stays { DrainPhase::Stuck } else { self.phase };
        Drain { phase, problem, ..self.clone() }
    }
}

impl HostName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for HostName {
    type Err = InvalidHostName;

    /// By Nova's own schema for host names (`nova/api/validation/parameter_types.py`, `hostname`).
    fn from_str(raw: &str) -> Result<Self, InvalidHostName> {
        let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        if raw.is_empty() || raw.len() > 255 || !raw.chars().all(legal) {
            return Err(InvalidHostName { raw: raw.chars().take(64).collect() });
        }
        Ok(HostName(raw.to_owned()))
    }
}

impl TryFrom<String> for HostName {
    type Error = InvalidHostName;

    fn try_from(raw: String) -> Result<Self, InvalidHostName> {
        raw.parse()
    }
}

impl From<HostName> for String {
    fn from(host: HostName) -> String {
        host.0
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A map whose keys are no text, as JSON: a list of pairs.
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
