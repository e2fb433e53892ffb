//! The record of what a BMC was asked to change, which tests read.

use std::collections::VecDeque;
use std::fmt;

use jiff::Timestamp;
use serde::Serialize;
use url::Url;

use crate::boot::{BootDevice, Lasting};

/// How many entries a machine keeps; the oldest go first.
const KEPT: usize = 4096;

/// One request that would change the machine, and whether the BMC did as asked.
///
/// Opening and closing sessions and reading are not recorded.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BmcLogEntry {
    /// When the BMC decided.
    pub at: Timestamp,
    /// Which face was asked.
    pub face: Face,
    /// What was asked.
    pub request: Request,
    /// What the BMC said to it.
    pub outcome: Outcome,
}

/// The side of a BMC a request came in by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Face {
    /// HTTP.
    Redfish,
    /// RMCP+.
    Ipmi,
}

/// What a BMC can be asked to change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// A change of power.
    Power(PowerRequest),
    /// A boot override.
    Boot(BootDevice, Lasting),
    /// No boot override.
    ClearBoot,
    /// An image for the virtual drive.
    InsertMedia(Url),
    /// An empty virtual drive.
    EjectMedia,
    /// The identify light, on or off.
    Identify(bool),
    /// An empty event log.
    ClearEventLog,
    /// Anything else, in the words of its protocol; every refused request that could not be understood is one.
    Other(String),
}

/// A change of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerRequest {
    /// On.
    On,
    /// Off at once.
    ForceOff,
    /// The operating system is asked to shut down.
    SoftOff,
    /// Reset at once.
    ForceRestart,
    /// The operating system is asked to shut down, then power returns.
    SoftRestart,
    /// Off at once, then on.
    Cycle,
    /// The power button: on when off, a polite off when on.
    PushButton,
    /// A non-maskable interrupt for the operating system.
    Interrupt,
}

/// What a BMC said to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It agreed.
    Accepted,
    /// It did not, for this reason.
    Refused(String),
}

/// A bounded list of entries.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: VecDeque<BmcLogEntry>,
}

impl Log {
    pub(crate) fn record(&mut self, face: Face, request: Request, outcome: Outcome) {
        if self.entries.len() == KEPT {
            self.entries.pop_front();
        }
        self.entries.push_back(BmcLogEntry { at: Timestamp::now(), face, request, outcome });
    }

    pub(crate) fn entries(&self) -> Vec<BmcLogEntry> {
        self.entries.iter().cloned().collect()
    }
}

impl fmt::Display for BmcLogEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?} {:?}: {:?}", self.at, self.face, self.request, self.outcome)
    }
}
