//! The logical disks of a RAID configuration, as the interface `redfish` makes them.

use hardware::{DriveMedia, RaidLevel};
use serde_json::{Map, Value};

/// A logical disk of a RAID configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogicalDisk {
    pub level: RaidLevel,
    /// The size in GiB; `None` for as much as the drives have.
    pub size_gib: Option<u64>,
    pub name: Option<String>,
    pub is_root: bool,
    pub controller: Option<String>,
    /// The ids of the drives.
    pub drives: Option<Vec<String>>,
    pub number_of_drives: Option<usize>,
    pub media: Option<DriveMedia>,
    /// The protocol of the drives in lower case.
    pub protocol: Option<String>,
    /// Whether the drives may belong to several volumes.
    pub shares_drives: bool,
}

/// Why the interface `redfish` cannot carry out a step or make a configuration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct RaidStepProblem {
    /// The path of the wrong field, such as `logical_disks[1].size_gb`.
    pub field: String,
    pub problem: String,
}

impl RaidStepProblem {
    pub(crate) fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        RaidStepProblem { field: field.into(), problem: problem.into() }
    }
}

/// Reads the logical disks of a configuration that `check_raid_config` accepts.
///
/// # Errors
///
/// Names the field of the first logical disk that a BMC cannot make.
pub(crate) fn logical_disks(
    config: &Map<String, Value>,
) -> Result<Vec<LogicalDisk>, RaidStepProblem> {
    let disks = config.get("logical_disks").and_then(Value::as_array);
    disks.into_iter().flatten().enumerate().map(|(number, disk)| parse(number, disk)).collect()
}

fn parse(number: usize, disk: &Value) -> Result<LogicalDisk, RaidStepProblem> {
    let refuse = |name: &str, problem: &str| {
        RaidStepProblem::new(format!("logical_disks[{number}].{name}"), problem)
    };
    let text = |name: &str| disk[name].as_str().map(str::to_owned);
    let level = RaidLevel::find(disk["raid_level"].as_str().unwrap_or_default());
    let levels = RaidLevel::ALL.map(RaidLevel::as_str).join(", ");
    let problem = format!("a BMC makes volumes of the levels {levels} only");
    let level = level.ok_or_else(|| refuse("raid_level", &problem))?;
    let protocol = text("interface_type");
    if protocol.as_deref() == Some("scsi") {
        return Err(refuse("interface_type", "Redfish has no drives with scsi"));
    }
    let drives = match disk["physical_disks"].as_array() {
        None => None,
        Some(drives) => {
            let ids = drives.iter().map(|drive| drive.as_str().map(str::to_owned)).collect();
            let ids: Option<Vec<String>> = ids;
            let ids = ids.filter(|ids| !ids.is_empty());
            Some(ids.ok_or_else(|| refuse("physical_disks", "must be a list of ids of drives"))?)
        }
    };
    let number_of_drives = disk["number_of_physical_disks"].as_u64();
    let number_of_drives = number_of_drives.and_then(|count| usize::try_from(count).ok());
    check_number(level, number_of_drives, drives.as_ref().map(Vec::len))
        .map_err(|(name, problem)| refuse(name, &problem))?;
    let size_gib = disk["size_gb"].as_u64();
    if size_gib == Some(0) {
        return Err(refuse("size_gb", "must be greater than 0"));
    }
    Ok(LogicalDisk {
        level,
        size_gib,
        name: text("volume_name"),
        is_root: disk["is_root_volume"] == true,
        controller: text("controller"),
        drives,
        number_of_drives,
        media: match disk["disk_type"].as_str() {
            Some("hdd") => Some(DriveMedia::Hdd),
            Some("ssd") => Some(DriveMedia::Ssd),
            _ => None,
        },
        protocol,
        shares_drives: disk["share_physical_disks"] == true,
    })
}

/// Checks how many drives a logical disk wants and names.
fn check_number(
    level: RaidLevel,
    wanted: Option<usize>,
    named: Option<usize>,
) -> Result<(), (&'static str, String)> {
    if let (Some(wanted), Some(named)) = (wanted, named)
        && wanted != named
    {
        let problem = format!("is {wanted}, and physical_disks names {named}");
        return Err(("number_of_physical_disks", problem));
    }
    match named.or(wanted) {
        Some(count) if level.data_drives(count).is_none() => {
            let problem = format!("level {} cannot have {count} physical disks", level.as_str());
            Err(("raid_level", problem))
        }
        Some(_) | None => Ok(()),
    }
}
