//! The latest observations of each machine, kept in memory for explanations only.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use baremetal_core::{NodeUuid, Obstacle};
use hardware::MacAddress;
use jiff::Timestamp;

/// One observation of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedObservation {
    pub at: Timestamp,
    /// The observation, in words for people.
    pub what: String,
}

/// The latest observations of a machine, by the part that was observed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastSeen {
    pub bmc: Option<TimedObservation>,
    pub dhcp: Option<TimedObservation>,
    pub tftp: Option<TimedObservation>,
    /// The machine's HTTP client: boot scripts, kernels and media.
    pub http: Option<TimedObservation>,
    pub agent: Option<TimedObservation>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ObservedPart {
    Bmc,
    Dhcp,
    Tftp,
    Http,
    Agent,
}

/// The latest observations of the machines of all nodes.
pub(crate) struct ObservationCache {
    clock: fn() -> Timestamp,
    book: Mutex<Observations>,
}

#[derive(Default)]
struct Observations {
    nodes: HashMap<NodeUuid, LastSeen>,
    /// The node of each MAC address, learned from DHCP requests.
    owners: HashMap<MacAddress, NodeUuid>,
    /// The calls to each node's agent that failed since the agent last answered.
    failed_calls: HashMap<NodeUuid, FailedCalls>,
    /// How many sweeps in a row failed to read the power state of each node.
    power_failures: HashMap<NodeUuid, u32>,
    /// For each node whose lease cannot be ended now, the obstacle that its history tells about.
    obstacles: HashMap<NodeUuid, Obstacle>,
}

/// Calls to an agent that failed in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailedCalls {
    pub(crate) calls: u32,
    /// When the first of them failed.
    pub(crate) since: Timestamp,
    /// Whether the node's history contains an entry about these calls.
    pub(crate) is_told: bool,
}

impl ObservationCache {
    pub(crate) fn new(clock: fn() -> Timestamp) -> Self {
        ObservationCache { clock, book: Mutex::default() }
    }

    /// Counts a failed call to the node's agent, and returns the failed calls since the agent last answered.
    pub(crate) fn call_failed(&self, node: NodeUuid) -> FailedCalls {
        let mut book = self.book();
        let failed = FailedCalls { calls: 0, since: (self.clock)(), is_told: false };
        let failed = book.failed_calls.entry(node).or_insert(failed);
        failed.calls = failed.calls.saturating_add(1);
        *failed
    }

    /// Forgets the failed calls, because the agent answered or is no longer needed.
    pub(crate) fn forget_failed_calls(&self, node: NodeUuid) {
        self.book().failed_calls.remove(&node);
    }

    /// Counts a sweep that failed to read the node's power state, and returns how many failed in a row.
    pub(crate) fn power_failed(&self, node: NodeUuid) -> u32 {
        let mut book = self.book();
        let failures = book.power_failures.entry(node).or_default();
        *failures = failures.saturating_add(1);
        *failures
    }

    /// Forgets the failed sweeps, because the BMC reported the power state.
    pub(crate) fn forget_power_failures(&self, node: NodeUuid) {
        self.book().power_failures.remove(&node);
    }

    pub(crate) fn of(&self, node: NodeUuid) -> LastSeen {
        self.book().nodes.get(&node).cloned().unwrap_or_default()
    }

    pub(crate) fn note(&self, node: NodeUuid, side: ObservedPart, what: impl Into<String>) {
        let sighting = TimedObservation { at: (self.clock)(), what: what.into() };
        let mut book = self.book();
        let seen = book.nodes.entry(node).or_default();
        match side {
            ObservedPart::Bmc => seen.bmc = Some(sighting),
            ObservedPart::Dhcp => seen.dhcp = Some(sighting),
            ObservedPart::Tftp => seen.tftp = Some(sighting),
            ObservedPart::Http => seen.http = Some(sighting),
            ObservedPart::Agent => seen.agent = Some(sighting),
        }
    }

    /// Returns the obstacle that the node's history tells about already.
    pub(crate) fn obstacle(&self, node: NodeUuid) -> Option<Obstacle> {
        self.book().obstacles.get(&node).cloned()
    }

    /// Remembers that the node's history tells about this obstacle.
    pub(crate) fn note_obstacle(&self, node: NodeUuid, obstacle: Obstacle) {
        let mut book = self.book();
        match obstacle {
            Obstacle::LeaseEnd(_) => {
                book.obstacles.insert(node, obstacle);
            }
            Obstacle::AgentCalls => {
                if let Some(failed) = book.failed_calls.get_mut(&node) {
                    failed.is_told = true;
                }
            }
        }
    }

    /// Remembers that the address belongs to the node.
    pub(crate) fn note_address_owner(&self, node: NodeUuid, mac: MacAddress) {
        self.book().owners.insert(mac, node);
    }

    /// Records an observation of an address, if the node of the address is known.
    pub(crate) fn note_address(
        &self,
        mac: MacAddress,
        side: ObservedPart,
        what: impl Into<String>,
    ) {
        let owner = self.book().owners.get(&mac).copied();
        if let Some(node) = owner {
            self.note(node, side, what);
        }
    }

    pub(crate) fn forget(&self, node: NodeUuid) {
        let mut book = self.book();
        book.nodes.remove(&node);
        book.obstacles.remove(&node);
        book.failed_calls.remove(&node);
        book.power_failures.remove(&node);
        book.owners.retain(|_, owner| *owner != node);
    }

    fn book(&self) -> MutexGuard<'_, Observations> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LastSeen {
    /// Returns one line for failure messages that says how far the machine's boot came.
    pub(crate) fn boot_trail(&self) -> String {
        let sides = [
            ("DHCP", &self.dhcp),
            ("TFTP", &self.tftp),
            ("HTTP", &self.http),
            ("agent", &self.agent),
        ];
        let seen: Vec<String> = sides
            .into_iter()
            .filter_map(|(side, sighting)| {
                sighting.as_ref().map(|it| format!("{side}: {}", it.what))
            })
            .collect();
        if seen.is_empty() {
            "no traffic of the machine was seen".to_owned()
        } else {
            format!("last seen: {}", seen.join("; "))
        }
    }
}
