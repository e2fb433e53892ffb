//! Machines that sent a boot request and are not enrolled.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::pages::Listed;

/// The discovered machines.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Discoveries {
    pub discoveries: Vec<Discovery>,
}

/// A discovered machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Discovery {
    pub mac: String,
    pub first_seen_at: Timestamp,
    pub last_seen_at: Timestamp,
    /// The report of the machine's agent, which no schema describes.
    pub data: Value,
}

impl Listed for Discovery {
    const LIST: &'static str = "discoveries";
}

impl Discovery {
    /// A text in the inventory that the machine's agent reported.
    pub fn reported(&self, pointer: &str) -> Option<&str> {
        self.data.get("inventory")?.pointer(pointer)?.as_str()
    }
}
