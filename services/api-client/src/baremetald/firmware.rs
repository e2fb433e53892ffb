//! The firmware of a machine: the versions of its components, and its BIOS settings.

use serde::Deserialize;

/// A component with firmware. An answer lacks the fields that the query leaves out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct FirmwareComponent {
    pub component: String,
    pub initial_version: String,
    pub current_version: String,
    /// The version that the last update installed.
    pub last_version_flashed: Option<String>,
}

/// A recorded BIOS setting. A list without details has only the name and the value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct BiosSetting {
    pub name: String,
    pub value: Option<String>,
    pub attribute_type: Option<String>,
    pub allowable_values: Vec<String>,
    pub lower_bound: Option<i64>,
    pub upper_bound: Option<i64>,
    pub read_only: Option<bool>,
    pub reset_required: Option<bool>,
    pub unique: Option<bool>,
}
