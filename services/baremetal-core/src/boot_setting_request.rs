//! A requested change of a boot setting, as the node records it.

use hardware::{BootSetting, PowerState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A requested change of a boot setting.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootSettingRequest {
    pub wanted: BootSetting,
    pub stage: BootSettingStage,
    /// When the stage began. Its timeout counts from here.
    pub since: Timestamp,
}

/// The progress of a change of a boot setting. Each stage may be repeated after a crash without harm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BootSettingStage {
    /// The BMC is asked for the change, unless it reports the wanted value already.
    Asking,
    /// The BMC has accepted the change. The machine is restarted unless the change is in force.
    Accepted,
    /// The machine was restarted, and the BMC is to report the wanted value. Afterwards the machine gets this power state again.
    Restarted { before: PowerState },
}
