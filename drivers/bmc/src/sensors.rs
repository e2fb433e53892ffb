//! What sensors and event logs say.

use serde::Serialize;

/// One sensor, read once.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reading {
    /// The sensor's name.
    pub name: String,
    /// Its value; `None` when it has none now.
    pub value: Option<f64>,
    /// The value's unit as IPMI spells it: `degrees C`, `RPM`, `Watts`, …
    pub unit: String,
    /// What the BMC thinks of the value.
    pub health: ReadingHealth,
}

/// What a BMC thinks of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadingHealth {
    /// Within bounds.
    Ok,
    /// Out of the non-critical bounds.
    Warning,
    /// Out of the critical bounds.
    Critical,
    /// The BMC does not say.
    Unknown,
}

/// One entry of a system event log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogEntry {
    /// The log's own id of it.
    pub id: String,
    /// When, in seconds since 1970; `None` when the BMC had no clock.
    pub at: Option<i64>,
    /// What happened.
    pub message: String,
}
