//! The log of requests to change a machine, which tests read.

use std::collections::VecDeque;
use std::fmt;

use jiff::Timestamp;
use serde::Serialize;
use url::Url;

use crate::boot::{BootDevice, OverrideDuration};
use crate::spec::Firmware;

/// How many entries a machine keeps. A full log drops the oldest entry.
const KEPT: usize = 4096;

/// One request to change the machine, and whether the BMC accepted it.
///
/// Reads are not recorded, and neither are logins and logouts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BmcLogEntry {
    /// When the BMC accepted or refused.
    pub at: Timestamp,
    pub face: Protocol,
    pub request: Request,
    pub outcome: Outcome,
}

/// The protocol by which a request came in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    Redfish,
    Ipmi,
}

/// A change that a BMC can be asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    Power(PowerRequest),
    Boot(BootDevice, OverrideDuration),
    ClearBoot,
    BootMode(Firmware),
    SecureBoot(bool),
    /// Replace the keys of secure boot by those of the maker (`true`) or by none.
    SecureBootKeys(bool),
    /// Change these BIOS attributes at the next start.
    ChangeBios(Vec<String>),
    /// Reset all BIOS attributes at the next start.
    ResetBios,
    /// Update a component to this version. The image was named or pushed.
    UpdateFirmware {
        component: String,
        version: String,
    },
    /// Make a RAID volume of this level on the drives with these serial numbers.
    CreateVolume {
        level: String,
        drives: Vec<String>,
    },
    DeleteVolume(String),
    /// Insert this image into a virtual drive.
    InsertMedia(Url),
    /// Eject the image of a virtual drive.
    EjectMedia,
    /// Send events to this URL.
    Subscribe(String),
    /// Delete the subscription with this id.
    Unsubscribe(u32),
    SetClock(Timestamp),
    /// Change the password of the account.
    ChangePassword,
    /// Switch the identify light on or off.
    Identify(bool),
    ClearEventLog,
    /// Any other change, in the words of its protocol. Refused requests that could not be parsed are logged as this.
    Other(String),
}

/// A change of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerRequest {
    On,
    ForceOff,
    /// Ask the operating system to shut down.
    SoftOff,
    ForceRestart,
    /// Ask the operating system to shut down, then switch on again.
    SoftRestart,
    /// Switch off at once, then on.
    Cycle,
    /// The power button: switches on if off, asks the operating system to shut down if on.
    PushButton,
    /// Send a non-maskable interrupt to the operating system.
    Interrupt,
}

/// The answer of a BMC to a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Accepted,
    Refused(String),
}

/// A bounded list of entries.
#[derive(Debug, Default)]
pub(crate) struct Log {
    entries: VecDeque<BmcLogEntry>,
}

impl Log {
    pub(crate) fn record(&mut self, face: Protocol, request: Request, outcome: Outcome) {
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
