//! The health of a machine.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The health that a BMC reports for the whole machine, with Redfish's words (DSP0268, `Health`), which Ironic shows too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Health {
    #[serde(rename = "OK")]
    Ok,
    /// A part needs attention.
    Warning,
    /// A part needs attention at once.
    Critical,
}

impl Health {
    /// Returns Redfish's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            Health::Ok => "OK",
            Health::Warning => "Warning",
            Health::Critical => "Critical",
        }
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
