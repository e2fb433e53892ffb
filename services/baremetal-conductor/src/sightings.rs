//! What was last seen of each machine: kept in memory, for explanations only.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use baremetal_core::NodeUuid;
use hardware::MacAddress;
use jiff::Timestamp;

/// Something seen of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// When.
    pub at: Timestamp,
    /// What was seen.
    pub what: String,
}

/// What was last seen of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LastSeen {
    /// Of its BMC.
    pub bmc: Option<Sighting>,
    /// Of its DHCP client.
    pub dhcp: Option<Sighting>,
    /// Of its TFTP client.
    pub tftp: Option<Sighting>,
    /// Of its HTTP client: boot scripts, kernels, media.
    pub http: Option<Sighting>,
    /// Of its agent.
    pub agent: Option<Sighting>,
}

/// Which side of a machine was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Bmc,
    Dhcp,
    Tftp,
    Http,
    Agent,
}

/// What was last seen of every machine of ours.
#[derive(Default)]
pub(crate) struct Sightings {
    book: Mutex<Book>,
}

#[derive(Default)]
struct Book {
    nodes: HashMap<NodeUuid, LastSeen>,
    /// Which node an address belongs to, as the last boot of it showed.
    owners: HashMap<MacAddress, NodeUuid>,
    /// Calls to an agent that failed since it last answered.
    failed_calls: HashMap<NodeUuid, FailedCalls>,
    /// Why a node stays as it is, as its history has it.
    held: HashMap<NodeUuid, String>,
}

/// Calls to an agent that failed one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FailedCalls {
    pub(crate) calls: u32,
    /// When the first of them was.
    pub(crate) since: Timestamp,
    /// Whether the node's history tells of them.
    pub(crate) is_told: bool,
}

impl Sightings {
    /// A call to the node's agent failed; the answer counts those since it last answered.
    pub(crate) fn call_failed(&self, node: NodeUuid) -> FailedCalls {
        let mut book = self.book();
        let failed = FailedCalls { calls: 0, since: Timestamp::now(), is_told: false };
        let failed = book.failed_calls.entry(node).or_insert(failed);
        failed.calls = failed.calls.saturating_add(1);
        *failed
    }

    /// The node's history tells of the calls that failed.
    pub(crate) fn told_of_failed_calls(&self, node: NodeUuid) {
        if let Some(failed) = self.book().failed_calls.get_mut(&node) {
            failed.is_told = true;
        }
    }

    /// Whether the node's history tells of the calls that failed.
    pub(crate) fn tells_of_failed_calls(&self, node: NodeUuid) -> bool {
        self.book().failed_calls.get(&node).is_some_and(|failed| failed.is_told)
    }

    /// The node's agent answered, or is of no more use.
    pub(crate) fn forget_failed_calls(&self, node: NodeUuid) {
        self.book().failed_calls.remove(&node);
    }

    pub(crate) fn of(&self, node: NodeUuid) -> LastSeen {
        self.book().nodes.get(&node).cloned().unwrap_or_default()
    }

    pub(crate) fn note(&self, node: NodeUuid, side: Side, what: impl Into<String>) {
        let sighting = Sighting { at: Timestamp::now(), what: what.into() };
        let mut book = self.book();
        let seen = book.nodes.entry(node).or_default();
        match side {
            Side::Bmc => seen.bmc = Some(sighting),
            Side::Dhcp => seen.dhcp = Some(sighting),
            Side::Tftp => seen.tftp = Some(sighting),
            Side::Http => seen.http = Some(sighting),
            Side::Agent => seen.agent = Some(sighting),
        }
    }

    /// Whether a node's history says why it stays as it is.
    pub(crate) fn is_held(&self, node: NodeUuid, why: &str) -> bool {
        self.book().held.get(&node).is_some_and(|told| told == why)
    }

    /// Its history says so.
    pub(crate) fn hold(&self, node: NodeUuid, why: String) {
        self.book().held.insert(node, why);
    }

    /// The address belongs to the node.
    pub(crate) fn owns(&self, node: NodeUuid, mac: MacAddress) {
        self.book().owners.insert(mac, node);
    }

    /// Notes what an address was seen doing; nothing where nobody owns it.
    pub(crate) fn note_address(&self, mac: MacAddress, side: Side, what: impl Into<String>) {
        let owner = self.book().owners.get(&mac).copied();
        if let Some(node) = owner {
            self.note(node, side, what);
        }
    }

    /// The node is gone.
    pub(crate) fn forget(&self, node: NodeUuid) {
        let mut book = self.book();
        book.nodes.remove(&node);
        book.held.remove(&node);
        book.failed_calls.remove(&node);
        book.owners.retain(|_, owner| *owner != node);
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LastSeen {
    /// One line for a failure that needs to say how far the machine came.
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
            "nothing was seen of it on the network".to_owned()
        } else {
            format!("last seen of it: {}", seen.join("; "))
        }
    }
}
