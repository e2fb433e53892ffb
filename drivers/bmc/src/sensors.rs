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
    /// The sensor itself. No API shows it.
    #[serde(skip)]
    pub sensor: Sensor,
}

/// A sensor of a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sensor {
    /// The id that Ironic gives the sensor, unique in the machine: `0@1` for Redfish, `Inlet Temp (0x5)` for IPMI.
    pub id: String,
    pub kind: SensorKind,
    /// The part that the sensor is at: the physical context of Redfish such as `CPU`, or the entity of IPMI such as `3.1 (Processor)`.
    /// Empty if the BMC does not tell.
    pub place: String,
    /// Whether the sensor works now, and its part is enabled.
    pub is_enabled: bool,
}

/// The kind of a sensor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SensorKind {
    Temperature,
    Fan,
    Voltage,
    Current,
    /// The power that the machine uses.
    Consumption,
    PowerSupply,
    Drive,
    #[default]
    Other,
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
