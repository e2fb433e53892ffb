//! Power: what a machine's is, and what it can be asked to do.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether a machine's main power is on, as its BMC sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum PowerState {
    /// The machine runs.
    #[serde(rename = "power on")]
    On,
    /// The machine is off; only its BMC runs.
    #[serde(rename = "power off")]
    Off,
}

impl PowerState {
    /// The word of the Bare Metal API.
    pub const fn as_str(self) -> &'static str {
        match self {
            PowerState::On => "power on",
            PowerState::Off => "power off",
        }
    }
}

impl fmt::Display for PowerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A change of power that a BMC can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerChange {
    /// Switch on; nothing happens to a machine that is on.
    On,
    /// Cut the power; nothing happens to a machine that is off.
    ForceOff,
    /// Ask the operating system to shut down, as by the power button; it may not listen.
    SoftOff,
    /// Reset without asking; switches on a machine that is off.
    ForceRestart,
    /// Ask the operating system to restart; it may not listen.
    SoftRestart,
}

impl PowerChange {
    /// The state a machine is in once the change has happened.
    pub const fn leads_to(self) -> PowerState {
        match self {
            PowerChange::On | PowerChange::ForceRestart | PowerChange::SoftRestart => {
                PowerState::On
            }
            PowerChange::ForceOff | PowerChange::SoftOff => PowerState::Off,
        }
    }
}
