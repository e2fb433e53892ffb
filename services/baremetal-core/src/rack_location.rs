//! The place of a machine in a rack.

use serde::{Deserialize, Serialize};

/// The rack and position of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RackLocation {
    pub rack: String,
    /// The position in the rack. The bring-up of a rack goes in this order.
    pub position: u32,
    /// A named group of machines within the rack.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The purpose of the machine, as named in the rack manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}
