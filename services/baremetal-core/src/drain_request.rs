//! Requests that wait until the node's compute host is drained, because they take the machine away from the servers on it.
//!
//! The API writes the request in the transaction that checks it; the conductor asks clusterd for the drain. Each stage is recorded before
//! clusterd is asked, and every question may be asked twice, so a crash at any point is harmless.

use std::time::Duration;

use hardware::PowerChange;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::{Verb, WantedSteps};

/// A request that waits until the node's compute host is drained.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainRequest {
    /// The name of the compute host in the cloud.
    pub host: String,
    /// The action that follows when the host is drained.
    pub then: AfterDrain,
    /// The steps of the request, for a verb.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<WantedSteps>,
    /// Whether the steps run without a boot of the ramdisk.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub disables_ramdisk: bool,
    /// Clusters that may lose their quorum by the drain, as allowed by the caller.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forced: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_by: Option<String>,
    /// The id of the project of the caller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub asked_at: Timestamp,
    pub stage: DrainStage,
}

/// The action that follows when the host is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AfterDrain {
    /// Nothing: an operator works on the node and does not wait for the drain.
    Maintenance,
    /// The node is installed again.
    Rebuild,
    /// The node is taken out of use.
    Undeploy,
    /// The node runs service steps.
    Service,
    /// The node boots a rescue system.
    Rescue,
    /// The node's power changes.
    Power {
        change: PowerChange,
        /// How long the change may take once it begins.
        timeout: Duration,
    },
}

/// The progress of a host's drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrainStage {
    /// The conductor has not looked yet whether the host is drained already.
    Wanted,
    /// The conductor asks clusterd for the drain and has not seen the answer yet.
    Asking(DrainOwner),
    /// clusterd drains the host.
    Waiting(DrainOwner),
    /// The drain has to end: the host accepts servers again, and the request is withdrawn.
    Ending,
}

/// The originator of a drain, which decides whether the drain ends when the request fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrainOwner {
    /// This request. If the request fails, its drain ends too.
    Request,
    /// An operator, before this request. If the request fails, the drain stays.
    Operator,
}

/// The state of a host's drain, as clusterd reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DrainSeen {
    NoHost,
    NotDrained,
    /// Servers are being moved away; this many are left.
    Draining(usize),
    /// No running server is left on the host.
    Drained,
    /// This many servers cannot be moved. The text is set if moving them would now cost a cluster its quorum.
    Stuck(usize, Option<String>),
    /// The drain is ending: the host accepts servers again.
    Ending,
    /// clusterd refused the drain, because a cluster would lose its quorum.
    Refused(String),
    /// clusterd did not answer, for this reason.
    Unknown(String),
}

/// A call to clusterd about a compute host. Every call may be repeated without harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClusterdCall {
    /// Read the state of the host's drain.
    Show { host: String },
    /// Start the drain, or extend it to these clusters that may lose their quorum.
    Drain { host: String, forced: Vec<String> },
    /// End the drain.
    Undrain { host: String },
}

/// The fate of the drain when its request is not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DrainFate {
    EndDrain,
    LeaveDrain,
}

impl DrainOwner {
    /// Returns who is the originator of a drain that is requested now, given the state of the drain before the request. `None` if the state
    /// is not known, or the host cannot be drained.
    pub fn of(before: &DrainSeen) -> Option<DrainOwner> {
        match before {
            DrainSeen::NotDrained | DrainSeen::Ending => Some(DrainOwner::Request),
            DrainSeen::Draining(_) | DrainSeen::Drained | DrainSeen::Stuck(..) => {
                Some(DrainOwner::Operator)
            }
            DrainSeen::NoHost | DrainSeen::Refused(_) | DrainSeen::Unknown(_) => None,
        }
    }

    /// Returns what happens to the drain when the request is not carried out.
    pub fn end(self) -> DrainFate {
        match self {
            DrainOwner::Request => DrainFate::EndDrain,
            DrainOwner::Operator => DrainFate::LeaveDrain,
        }
    }
}

impl AfterDrain {
    /// Returns the Bare Metal API's word for what follows.
    pub fn as_str(self) -> &'static str {
        match self {
            AfterDrain::Maintenance => "maintenance",
            AfterDrain::Rebuild => Verb::Rebuild.as_str(),
            AfterDrain::Undeploy => Verb::Undeploy.as_str(),
            AfterDrain::Service => Verb::Service.as_str(),
            AfterDrain::Rescue => Verb::Rescue.as_str(),
            AfterDrain::Power { change, .. } => match change {
                PowerChange::On => "power on",
                PowerChange::ForceOff => "power off",
                PowerChange::SoftOff => "soft power off",
                PowerChange::ForceRestart => "rebooting",
                PowerChange::SoftRestart => "soft rebooting",
            },
        }
    }
}

impl DrainRequest {
    /// Returns whether a request waits, and is not being withdrawn.
    pub fn is_waiting(&self) -> bool {
        self.stage != DrainStage::Ending && self.then != AfterDrain::Maintenance
    }

    /// Returns whether a change of power waits.
    pub(crate) fn awaits_power(&self) -> bool {
        self.is_waiting() && matches!(self.then, AfterDrain::Power { .. })
    }

    /// Returns the record that ends the drain, or `None` if the drain stays as it is.
    pub(crate) fn withdrawn(&self, end: DrainFate) -> Option<DrainRequest> {
        match end {
            DrainFate::EndDrain => Some(DrainRequest { stage: DrainStage::Ending, ..self.clone() }),
            DrainFate::LeaveDrain => None,
        }
    }

    /// Returns what remains of this request when the node gets another request that needs no drain.
    pub(crate) fn superseded(&self) -> Option<DrainRequest> {
        (self.stage == DrainStage::Ending).then(|| self.clone())
    }

    /// Returns what remains of this request when a caller cancels it: nothing, or the record that ends the drain.
    pub(crate) fn cancelled(&self) -> Option<DrainRequest> {
        match self.stage {
            DrainStage::Wanted => None,
            DrainStage::Asking(owner) | DrainStage::Waiting(owner) => self.withdrawn(owner.end()),
            DrainStage::Ending => Some(self.clone()),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
