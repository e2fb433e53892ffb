//! A change of the volumes of a storage controller, and how far the change is.

use hardware::{ApplyTime, NewVolume, RaidVolume};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::Step;

/// A volume to make or to delete, with everything that the BMC is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VolumeChange {
    Delete {
        /// The path of the storage controller.
        storage: String,
        /// The path of the volume.
        volume: String,
        /// The name of the volume for people.
        label: String,
        applies: ApplyTime,
    },
    Create {
        volume: NewVolume,
        /// Whether the operating system is to be installed on the volume.
        is_root: bool,
    },
}

/// One change in progress.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RaidChange {
    pub step: Step,
    pub change: VolumeChange,
    pub stage: RaidStage,
}

/// How far a change is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RaidStage {
    /// The BMC was not asked, or refused because it was busy.
    Ready,
    /// The BMC is about to be asked. After an interruption, a new task or the list of volumes tells whether it was.
    Asking {
        /// The tasks that the BMC had before; `None` if it lists no tasks.
        tasks: Option<Vec<String>>,
        /// The paths of the volumes that the controller had before.
        volumes: Vec<String>,
        at: Timestamp,
    },
    Accepted(AcceptedRaidChange),
}

/// A change that the BMC accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedRaidChange {
    /// The task of the BMC; `None` if the BMC has none.
    pub task: Option<String>,
    /// The paths of the volumes that the controller had before.
    pub volumes: Vec<String>,
    pub at: Timestamp,
    /// When the task was first seen to have ended without an effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restarted: bool,
}

impl VolumeChange {
    /// Returns the path of the storage controller.
    pub fn storage(&self) -> &str {
        match self {
            VolumeChange::Delete { storage, .. } => storage,
            VolumeChange::Create { volume, .. } => &volume.storage,
        }
    }

    /// Returns when the controller carries out the change.
    pub fn applies(&self) -> ApplyTime {
        match self {
            VolumeChange::Delete { applies, .. } => *applies,
            VolumeChange::Create { volume, .. } => volume.applies,
        }
    }

    /// Returns the change as words for people: `deleting the volume data`.
    pub fn describe(&self) -> String {
        match self {
            VolumeChange::Delete { label, .. } => format!("deleting the volume {label}"),
            VolumeChange::Create { volume, .. } => format!("making the volume {}", volume.name),
        }
    }

    /// Returns the volume that `listed` has for a new volume, where `before` are the paths of the volumes before the request.
    pub fn made<'a>(&self, listed: &'a [RaidVolume], before: &[String]) -> Option<&'a RaidVolume> {
        match self {
            VolumeChange::Delete { .. } => None,
            VolumeChange::Create { volume, .. } => {
                listed.iter().find(|it| !before.contains(&it.path) && it.is_made_of(volume))
            }
        }
    }

    /// Returns whether the change has happened, given the volumes that the BMC lists.
    pub fn has_happened(&self, listed: &[RaidVolume], before: &[String]) -> bool {
        match self {
            VolumeChange::Delete { volume, .. } => listed.iter().all(|it| it.path != *volume),
            VolumeChange::Create { .. } => self.made(listed, before).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use hardware::RaidLevel;

    use super::*;

    #[test]
    fn a_change_is_requested_from_the_controller_of_its_volume() {
        let delete = VolumeChange::Delete {
            storage: "/s/1".to_owned(),
            volume: "/v/1".to_owned(),
            label: "old".to_owned(),
            applies: ApplyTime::Immediate,
        };
        let volume = NewVolume {
            storage: "/s/2".to_owned(),
            level: RaidLevel::Raid0,
            drives: Vec::new(),
            size_bytes: None,
            name: "new".to_owned(),
            name_is_optional: true,
            applies: ApplyTime::Immediate,
        };
        let create = VolumeChange::Create { volume, is_root: false };
        assert_eq!([delete.storage(), create.storage()], ["/s/1", "/s/2"]);
    }
}
