//! The section `[sensors]`: how often the sensors of machines are read for the metrics.

use std::num::NonZeroUsize;

use baremetal_conductor::SensorSettings;
use jiff::SignedDuration;
use serde::Deserialize;

/// The section `[sensors]`: without it, no sensors are read for the metrics.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SensorsConfig {
    /// The interval between two readings of a machine.
    pub every: SignedDuration,
    /// How many BMCs are asked in parallel.
    pub at_once: NonZeroUsize,
    /// Whether machines without an instance are read too.
    pub undeployed_nodes: bool,
}

impl Default for SensorsConfig {
    fn default() -> Self {
        // As in Ironic: `interval` and `workers` of `[sensor_data]`.
        SensorsConfig {
            every: SignedDuration::from_mins(10),
            at_once: NonZeroUsize::MIN.saturating_add(3),
            undeployed_nodes: false,
        }
    }
}

impl SensorsConfig {
    pub(super) fn settings(&self) -> anyhow::Result<SensorSettings> {
        let least = SignedDuration::from_secs(1);
        anyhow::ensure!(self.every >= least, "sensors.every: must be 1s or longer");
        Ok(SensorSettings {
            every: self.every.unsigned_abs(),
            at_once: self.at_once.get(),
            undeployed_nodes: self.undeployed_nodes,
        })
    }
}
