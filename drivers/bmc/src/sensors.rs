//! Sensor readings and entries of event logs.

use serde::Serialize;

/// The state of one sensor at the time of reading.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Reading {
    pub name: String,
    /// `None` when the sensor has no value now.
    pub value: Option<f64>,
    /// The unit as IPMI spells it: `degrees C`, `RPM`, `Watts`, …
    pub unit: String,
    pub health: ReadingHealth,
}

/// The BMC's judgement of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadingHealth {
    /// Within all thresholds.
    Ok,
    /// Outside the non-critical thresholds.
    Warning,
    /// Outside the critical thresholds.
    Critical,
    /// The BMC gives no judgement.
    Unknown,
}

/// One entry of a system event log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogEntry {
    /// The id of the entry in the BMC's log.
    pub id: String,
    /// The time of the event, in seconds since 1970; `None` when the BMC had no clock.
    pub at: Option<i64>,
    pub message: String,
}
