//! Power states and power changes.

use serde::{Deserialize, Serialize};

words::words! {
    /// Whether the machine's main power is on, as its BMC reports, in the words of the Bare Metal API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum PowerState {
        #[serde(rename = "power on")]
        On = "power on",
        /// Only the BMC runs.
        #[serde(rename = "power off")]
        Off = "power off",
    }
}

/// A change of power that a BMC can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PowerChange {
    /// Switch on. A machine that is on stays on.
    On,
    /// Cut the power. A machine that is off stays off.
    ForceOff,
    /// Ask the operating system to shut down, like a press of the power button. The operating system may ignore the request.
    SoftOff,
    /// Reset without asking the operating system. Switches on a machine that is off.
    ForceRestart,
    /// Ask the operating system to restart. The operating system may ignore the request.
    SoftRestart,
}

impl PowerChange {
    /// The state of the machine once the change has happened.
    pub const fn leads_to(self) -> PowerState {
        match self {
            PowerChange::On | PowerChange::ForceRestart | PowerChange::SoftRestart => {
                PowerState::On
            }
            PowerChange::ForceOff | PowerChange::SoftOff => PowerState::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn power_states_have_the_names_of_the_bare_metal_api() {
        assert_eq!(PowerState::On.to_string(), "power on");
        assert_eq!(PowerState::Off.to_string(), "power off");
    }
}
