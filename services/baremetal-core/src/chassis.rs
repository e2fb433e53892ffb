//! The record of a chassis.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::Content;

/// A chassis, which groups nodes. It has no effect on them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chassis {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Free-form notes of the operator, ignored by the service.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

impl Content for Chassis {
    const KIND: &'static str = "chassis";
}
