//! How the living conductors share the work: each resource and each task belongs to one of them. Pure.
//!
//! Rendezvous hashing: each conductor has a score for each key, and the highest score gets the key. So a conductor that joins or leaves moves
//! only its own share. All conductors compute the same from the same list, and nothing about a single resource is stored.

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::str::FromStr;

use database::conductors::{ConductorRow, Conductors};
use newtype_uuid::{GenericUuid, TypedUuid, TypedUuidKind};
use reconcile::Mutation;
use uuid::Uuid;

/// The key of a resource that one of the living conductors works on. Notifications contain its text, which has no space.
pub trait ShareKey: Copy + Debug + Display + FromStr + Hash + Ord + Send + Sync + 'static {
    /// The word for the kind of resource. All versions of the program have the same word, because it decides which conductor has the resource.
    fn kind(&self) -> &'static str;

    /// The id of the resource.
    fn id(&self) -> Uuid;
}

impl<K: TypedUuidKind> ShareKey for TypedUuid<K> {
    fn kind(&self) -> &'static str {
        K::tag().as_str()
    }

    fn id(&self) -> Uuid {
        self.into_untyped_uuid()
    }
}

/// A conductor whose lease has not passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LivingConductor {
    pub hostname: String,
    /// How often the conductor got a lease. Each new lease has a new epoch.
    pub epoch: i64,
    /// The conductor groups whose resources it manages. Resources without groups are in the group with the empty name.
    pub groups: Vec<String>,
    /// A draining conductor lives, and gets no work.
    pub is_draining: bool,
    /// The fingerprint of the last list of living conductors for which it has let go of everything that belongs to others.
    pub settled: String,
}

impl LivingConductor {
    /// The part of a row that the conductors share the work by.
    pub fn of(row: &ConductorRow) -> LivingConductor {
        LivingConductor {
            hostname: row.hostname.clone(),
            epoch: row.epoch,
            groups: row.groups.clone(),
            is_draining: row.is_draining,
            settled: row.settled.clone(),
        }
    }
}

/// Whether a conductor works, and how far it follows the changes of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConductorState {
    Working,
    /// Conductors came or went, and it still has turns for resources of others, or has not looked at the others yet.
    Rebalancing,
    /// It takes no work, and still has turns.
    Draining,
    /// It takes no work, and has no turn.
    Drained,
    /// Its lease has passed.
    Dead,
}

impl ConductorState {
    /// All states.
    pub const ALL: [ConductorState; 5] = [
        ConductorState::Working,
        ConductorState::Rebalancing,
        ConductorState::Draining,
        ConductorState::Drained,
        ConductorState::Dead,
    ];

    /// The word that the API uses for the state.
    pub const fn as_str(self) -> &'static str {
        match self {
            ConductorState::Working => "working",
            ConductorState::Rebalancing => "rebalancing",
            ConductorState::Draining => "draining",
            ConductorState::Drained => "drained",
            ConductorState::Dead => "dead",
        }
    }
}

/// The living conductors at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LivingConductors {
    all: Vec<LivingConductor>,
    fingerprint: String,
}

impl LivingConductors {
    /// The living conductors, in any order.
    pub fn new(mut all: Vec<LivingConductor>) -> LivingConductors {
        all.sort_by(|a, b| a.hostname.cmp(&b.hostname));
        let one = |it: &LivingConductor| {
            format!("{}/{}{}", it.hostname, it.epoch, if it.is_draining { "-" } else { "" })
        };
        let fingerprint = all.iter().map(one).collect::<Vec<_>>().join(" ");
        LivingConductors { all, fingerprint }
    }

    /// The living conductors among these rows of a database. On a database that is not shared, a conductor has no lease.
    pub fn listed(rows: &[ConductorRow], of: &Conductors) -> LivingConductors {
        let is_living = |row: &&ConductorRow| row.is_alive && (row.epoch > 0 || !of.is_shared());
        LivingConductors::new(rows.iter().filter(is_living).map(LivingConductor::of).collect())
    }

    /// Counts the conductors among these rows of a database by their state.
    pub fn tally(rows: &[ConductorRow], of: &Conductors) -> [(ConductorState, u64); 5] {
        let living = LivingConductors::listed(rows, of);
        ConductorState::ALL.map(|state| {
            let count = rows.iter().filter(|row| living.state_of(&row.hostname) == state).count();
            (state, count as u64)
        })
    }

    /// The same for equal lists, and different for different ones.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Returns the conductor that works on a resource of this conductor group; `None` if no conductor does.
    pub fn conductor_of(&self, key: &impl ShareKey, group: &str) -> Option<&str> {
        let key = hash(key.kind(), key.id().as_bytes());
        let fits = |it: &&LivingConductor| it.groups.iter().any(|known| known == group);
        highest(self.all.iter().filter(fits), key)
    }

    /// Returns the conductor that does a task that belongs to no conductor group.
    pub fn conductor_of_task(&self, task: &str) -> Option<&str> {
        highest(self.all.iter(), hash("task", task.as_bytes()))
    }

    /// Whether the resource belongs to a conductor other than `hostname` if it is in some conductor group. A conductor without a lease knows
    /// nobody, and everything may be elsewhere.
    pub fn may_be_elsewhere(&self, key: &impl ShareKey, hostname: &str) -> bool {
        let elsewhere = |group: &String| self.conductor_of(key, group) != Some(hostname);
        self.all.is_empty() || self.all.iter().flat_map(|it| &it.groups).any(elsewhere)
    }

    /// Returns the state of the conductor with this host name.
    pub fn state_of(&self, hostname: &str) -> ConductorState {
        let Some(it) = self.all.iter().find(|it| it.hostname == hostname) else {
            return ConductorState::Dead;
        };
        // A conductor without leases has no others.
        let is_settled = it.epoch == 0 || it.settled == self.fingerprint;
        match (it.is_draining, is_settled) {
            (false, true) => ConductorState::Working,
            (false, false) => ConductorState::Rebalancing,
            (true, false) => ConductorState::Draining,
            (true, true) => ConductorState::Drained,
        }
    }

    /// The host names of the conductors, in their order.
    pub fn hostnames(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|it| it.hostname.as_str())
    }

    /// The conductor groups that have a living conductor, each once.
    pub fn groups(&self) -> Vec<String> {
        let mut groups: Vec<String> = Vec::new();
        for group in self.all.iter().flat_map(|it| &it.groups) {
            if !groups.contains(group) {
                groups.push(group.clone());
            }
        }
        groups
    }

    /// Whether each of these conductors has let go of everything that belongs to others.
    fn are_settled(&self) -> bool {
        self.all.iter().all(|it| it.settled == self.fingerprint)
    }
}

/// The share of one conductor, while conductors come and go.
///
/// A conductor works on a resource that it gained only after all living conductors have let go of their losses, which each of them records.
/// Until then its share is what belongs to it by the list that was confirmed last, and by all lists since.
#[derive(Clone, Debug)]
pub(crate) struct ConductorShare {
    hostname: String,
    /// The confirmed list, and all since. There is at least one; the first one is empty until a list is confirmed.
    lists: Vec<LivingConductors>,
}

/// The result of a look at the living conductors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShareChange {
    Unchanged,
    /// Conductors came or went. The share is what belongs to this conductor before and after.
    Narrowed,
    /// All conductors have let go of what they lost. The share is complete.
    Confirmed,
}

impl ConductorShare {
    /// The share of a conductor that has just got its lease, or has none: nothing.
    pub(crate) fn nothing(hostname: &str) -> ConductorShare {
        ConductorShare { hostname: hostname.to_owned(), lists: vec![LivingConductors::default()] }
    }

    /// Takes note of the living conductors, of which this one has to be one.
    pub(crate) fn observe(&mut self, living: LivingConductors) -> ShareChange {
        if self.living().fingerprint != living.fingerprint {
            self.lists.push(living);
            return ShareChange::Narrowed;
        }
        if self.lists.len() > 1 && living.are_settled() {
            self.lists = vec![living];
            return ShareChange::Confirmed;
        }
        ShareChange::Unchanged
    }

    /// The conductors that lived at the last look.
    pub(crate) fn living(&self) -> &LivingConductors {
        self.lists.last().unwrap_or(&NONE)
    }

    /// Whether this conductor works on the resource.
    pub(crate) fn has(&self, key: &impl ShareKey, group: &str) -> bool {
        if Mutation::NoShares.is_made() {
            return !self.living().all.is_empty();
        }
        let own = Some(self.hostname.as_str());
        self.lists.iter().all(|list| list.conductor_of(key, group) == own)
    }

    /// Whether this conductor does a task that belongs to no conductor group.
    pub(crate) fn has_task(&self, task: &str) -> bool {
        let own = Some(self.hostname.as_str());
        self.lists.iter().all(|list| list.conductor_of_task(task) == own)
    }
}

static NONE: LivingConductors = LivingConductors { all: Vec::new(), fingerprint: String::new() };

/// Returns the conductor that takes work and has the highest score for the key.
fn highest<'a>(all: impl Iterator<Item = &'a LivingConductor>, key: u64) -> Option<&'a str> {
    let taking = all.filter(|it| !it.is_draining).map(|it| it.hostname.as_str());
    taking
        .max_by_key(|hostname| (mix(hash("conductor", hostname.as_bytes()) ^ mix(key)), *hostname))
}

/// FNV-1a. The hash of the standard library may differ between versions of this program that run side by side.
fn hash(kind: &str, name: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    kind.as_bytes().iter().chain(&[0]).chain(name).fold(0xcbf2_9ce4_8422_2325, step)
}

/// Distributes close values over all bits: the last step of `SplitMix64`.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests;
