//! RAID by storage controllers, as a BMC shows it (DSP0268 `Storage`, `Drive`, `Volume`).

use serde::{Deserialize, Serialize};

words::words! {
    /// The levels of RAID that have a `RAIDType` in DSP0268, with Ironic's names: first the simple levels, then those of several spans.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum RaidLevel {
        #[serde(rename = "0")]
        Raid0 = "0",
        #[serde(rename = "1")]
        Raid1 = "1",
        #[serde(rename = "5")]
        Raid5 = "5",
        #[serde(rename = "6")]
        Raid6 = "6",
        #[serde(rename = "1+0")]
        Raid10 = "1+0",
        #[serde(rename = "5+0")]
        Raid50 = "5+0",
        #[serde(rename = "6+0")]
        Raid60 = "6+0",
    }
}

/// A storage controller that can have volumes, with its drives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StorageController {
    pub id: String,
    /// The name of the controller in requests to the BMC.
    pub path: String,
    /// The levels of the volumes that the controller makes; `None` if the BMC does not tell them.
    pub levels: Option<Vec<RaidLevel>>,
    pub applies: ApplyTime,
    pub drives: Vec<RaidDrive>,
    pub volumes: Vec<RaidVolume>,
}

/// When a controller carries out a change of its volumes (DSP0268 `OperationApplyTime`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ApplyTime {
    /// The BMC takes no such parameter.
    Untold,
    Immediate,
    /// At the next start of the machine.
    OnReset,
}

/// A drive of a storage controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaidDrive {
    pub id: String,
    /// The name of the drive in requests to the BMC.
    pub path: String,
    pub size_bytes: u64,
    pub media: Option<DriveMedia>,
    /// The protocol in lower case: `sas`, `sata`, `nvme`.
    pub protocol: Option<String>,
    /// Whether the drive is present, healthy and no spare.
    pub is_usable: bool,
}

/// The technology of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriveMedia {
    Hdd,
    Ssd,
}

/// A volume of a storage controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RaidVolume {
    pub id: String,
    /// The name of the volume in requests to the BMC.
    pub path: String,
    pub name: Option<String>,
    /// Whether the volume is a RAID, and not a single drive that the operating system sees as it is.
    pub is_raid: bool,
    /// The level; `None` also for a level that Ironic does not name.
    pub level: Option<RaidLevel>,
    pub size_bytes: Option<u64>,
    /// The paths of the drives; empty if the BMC does not tell them.
    pub drives: Vec<String>,
}

/// A volume to make.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewVolume {
    /// The path of the storage controller.
    pub storage: String,
    pub level: RaidLevel,
    /// The paths of the drives.
    pub drives: Vec<String>,
    /// The size; `None` for as much as the drives have.
    pub size_bytes: Option<u64>,
    pub name: String,
    /// Whether the name can be left out for a BMC that takes no names.
    pub name_is_optional: bool,
    pub applies: ApplyTime,
}

impl RaidLevel {
    /// Returns how many of `drives` drives hold data, or `None` if the level cannot have so many drives. The limits are Ironic's.
    pub fn data_drives(self, drives: usize) -> Option<usize> {
        let is_even = drives.is_multiple_of(2);
        match self {
            RaidLevel::Raid0 if drives >= 1 => Some(drives),
            RaidLevel::Raid1 if drives == 2 => Some(1),
            RaidLevel::Raid5 if drives >= 3 => Some(drives - 1),
            RaidLevel::Raid6 if drives >= 4 => Some(drives - 2),
            RaidLevel::Raid10 if drives >= 4 && is_even => Some(drives / 2),
            RaidLevel::Raid50 if drives >= 6 && is_even => Some(drives - 2),
            RaidLevel::Raid60 if drives >= 8 && is_even => Some(drives - 4),
            RaidLevel::Raid0
            | RaidLevel::Raid1
            | RaidLevel::Raid5
            | RaidLevel::Raid6
            | RaidLevel::Raid10
            | RaidLevel::Raid50
            | RaidLevel::Raid60 => None,
        }
    }
}

impl RaidVolume {
    /// Returns whether this volume, which was not there before `wanted` was requested, is the requested one.
    pub fn is_made_of(&self, wanted: &NewVolume) -> bool {
        let is_same = |drive: &String| wanted.drives.contains(drive);
        let has_name = self.name.as_ref() == Some(&wanted.name);
        let has_drives =
            self.drives.len() == wanted.drives.len() && self.drives.iter().all(is_same);
        has_name || has_drives || self.drives.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_has_a_least_number_of_drives() {
        let least = RaidLevel::ALL.map(|level| {
            let least = (0..20).find(|drives| level.data_drives(*drives).is_some()).unwrap();
            (level.as_str(), least, level.data_drives(least).unwrap())
        });
        let want = [
            ("0", 1, 1),
            ("1", 2, 1),
            ("5", 3, 2),
            ("6", 4, 2),
            ("1+0", 4, 2),
            ("5+0", 6, 4),
            ("6+0", 8, 4),
        ];
        assert_eq!(least, want);
        assert_eq!(RaidLevel::Raid1.data_drives(3), None);
        assert_eq!(RaidLevel::Raid10.data_drives(5), None);
        assert_eq!(RaidLevel::find("5+0"), Some(RaidLevel::Raid50));
        assert_eq!(RaidLevel::find("JBOD"), None);
    }

    #[test]
    fn a_volume_is_recognized_by_its_name_or_its_drives() {
        let drives = |drives: &[&str]| drives.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        let wanted = NewVolume {
            storage: "/s".to_owned(),
            level: RaidLevel::Raid1,
            drives: drives(&["/1", "/2"]),
            size_bytes: None,
            name: "ours".to_owned(),
            name_is_optional: true,
            applies: ApplyTime::Immediate,
        };
        let is_ours = |name: &str, of: &[&str]| {
            let volume = RaidVolume {
                id: "1".to_owned(),
                path: "/v/1".to_owned(),
                name: Some(name.to_owned()),
                is_raid: true,
                level: None,
                size_bytes: None,
                drives: drives(of),
            };
            volume.is_made_of(&wanted)
        };
        assert!(is_ours("ours", &["/7"]));
        assert!(is_ours("Volume 1", &["/2", "/1"]));
        assert!(is_ours("Volume 1", &[]));
        assert!(!is_ours("Volume 1", &["/1", "/3"]));
    }
}
