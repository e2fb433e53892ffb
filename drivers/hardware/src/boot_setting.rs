//! Settings of the firmware that decide how it boots: the boot mode and secure boot.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{BootMode, Health, PowerState};

/// A boot setting with a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BootSetting {
    Mode(BootMode),
    /// Whether the firmware starts only signed programs.
    SecureBoot(bool),
}

/// The keys of Secure Boot that a firmware gets in place of those it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SecureBootKeys {
    /// The keys of the machine's maker.
    Factory,
    /// None: the firmware starts every program until somebody enrolls keys.
    None,
}

/// The values of the boot settings that a BMC reports. `None` if the BMC does not report the setting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BootSettings {
    pub mode: Option<BootMode>,
    pub secure_boot: Option<bool>,
}

/// The power state, the health and the boot settings of a machine, read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerAndBootSettings {
    pub power: PowerState,
    /// `None` if the BMC does not report it.
    pub health: Option<Health>,
    /// `None` if the BMC could not report the settings at this time.
    pub settings: Option<BootSettings>,
}

impl BootSettings {
    /// Returns whether `wanted` is in force.
    pub fn has(self, wanted: BootSetting) -> bool {
        match wanted {
            BootSetting::Mode(mode) => self.mode == Some(mode),
            BootSetting::SecureBoot(on) => self.secure_boot == Some(on),
        }
    }
}

impl fmt::Display for BootSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BootSetting::Mode(mode) => write!(f, "boot mode to {mode}"),
            BootSetting::SecureBoot(true) => f.write_str("secure boot to on"),
            BootSetting::SecureBoot(false) => f.write_str("secure boot to off"),
        }
    }
}
