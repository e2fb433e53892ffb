//! The resource tree: which paths exist, and which methods each path allows.

use http::Method;

use crate::profile::{MediaChange, MediaPlace, Part, Profile, ResetValuesSource};
use crate::redfish::RedfishFace;
use crate::sensors::SENSORS;

/// A resource with a path of its own. Indexes count from 0, ids are those in the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Resource {
    Versions,
    Root,
    OData,
    Metadata,
    SessionService,
    Sessions,
    Session(u32),
    AccountService,
    Accounts,
    Account,
    Roles,
    Role,
    Systems,
    System,
    SystemSettings,
    ResetActionInfo,
    Reset,
    Processors,
    Processor(usize),
    Dimms,
    Dimm(usize),
    StorageUnits,
    Storage,
    Drive(usize),
    Volumes,
    Nics,
    Nic(usize),
    Managers,
    Manager,
    ManagerNics,
    ManagerNic,
    MediaDrives,
    MediaDrive(usize),
    InsertMedia(usize),
    EjectMedia(usize),
    Logs,
    Log,
    LogEntries,
    LogEntry(u16),
    ClearLog,
    AllChassis,
    Chassis,
    Thermal,
    Power,
    Sensors,
    Sensor(usize),
    UpdateService,
    FirmwareInventory,
    Firmware(usize),
    TaskService,
    Tasks,
    Task(u32),
    TaskMonitor(u32),
}

/// The members of `FirmwareInventory`.
pub(crate) const FIRMWARE: [&str; 2] = ["BMC", "BIOS"];

impl Resource {
    /// The path of the resource.
    pub(crate) fn path(&self, profile: &Profile) -> String {
        if *self == Resource::Versions {
            return "/redfish".to_owned();
        }
        let slash = if profile.trailing_slash && *self != Resource::Root { "/" } else { "" };
        format!("/redfish/v1/{}{slash}", self.below_root(profile))
    }

    /// The resource at `path`, with or without a slash at the end (DSP0266 §6.4).
    ///
    /// Sessions, tasks and log entries come and go. Their documents tell whether they exist.
    pub(crate) fn find(path: &str, face: &RedfishFace) -> Option<Resource> {
        let path = path.strip_suffix('/').unwrap_or(path);
        match path.strip_prefix("/redfish")? {
            "" => Some(Resource::Versions),
            "/v1" => Some(Resource::Root),
            below => Resource::find_below_root(below.strip_prefix("/v1/")?, face),
        }
    }

    /// The path below `/redfish/v1/`.
    fn below_root(&self, profile: &Profile) -> String {
        let ids = &profile.ids;
        // Closures, because a lookup compares a path with the paths of all resources, and most need only one of these.
        let system = || format!("Systems/{}", ids.system);
        let manager = || format!("Managers/{}", ids.manager);
        let chassis = || format!("Chassis/{}", ids.chassis);
        let log = || format!("{}/LogServices/{}", manager(), ids.log);
        let storage = || format!("{}/Storage/{}", system(), ids.storage);
        match self {
            Resource::Versions | Resource::Root => String::new(),
            Resource::OData => "odata".to_owned(),
            Resource::Metadata => "$metadata".to_owned(),
            Resource::SessionService => "SessionService".to_owned(),
            Resource::Sessions => "SessionService/Sessions".to_owned(),
            Resource::Session(id) => format!("SessionService/Sessions/{id}"),
            Resource::AccountService => "AccountService".to_owned(),
            Resource::Accounts => "AccountService/Accounts".to_owned(),
            Resource::Account => "AccountService/Accounts/1".to_owned(),
            Resource::Roles => "AccountService/Roles".to_owned(),
            Resource::Role => "AccountService/Roles/Administrator".to_owned(),
            Resource::Systems => "Systems".to_owned(),
            Resource::System => system(),
            Resource::SystemSettings => {
                format!("{}/{}", system(), profile.boot.settings.as_deref().unwrap_or("Settings"))
            }
            Resource::ResetActionInfo => format!("{}/ResetActionInfo", system()),
            Resource::Reset => format!("{}/Actions/ComputerSystem.Reset", system()),
            Resource::Processors => format!("{}/Processors", system()),
            Resource::Processor(index) => {
                format!("{}/Processors/{}", system(), numbered(&ids.processor, *index))
            }
            Resource::Dimms => format!("{}/Memory", system()),
            Resource::Dimm(index) => format!("{}/Memory/{}", system(), numbered(&ids.dimm, *index)),
            Resource::StorageUnits => format!("{}/Storage", system()),
            Resource::Storage => storage(),
            Resource::Drive(index) => {
                format!("{}/Drives/{}", storage(), numbered(&ids.drive, *index))
            }
            Resource::Volumes => format!("{}/Volumes", storage()),
            Resource::Nics => format!("{}/EthernetInterfaces", system()),
            Resource::Nic(index) => {
                format!("{}/EthernetInterfaces/{}", system(), numbered(&ids.nic, *index))
            }
            Resource::Managers => "Managers".to_owned(),
            Resource::Manager => manager(),
            Resource::ManagerNics => format!("{}/EthernetInterfaces", manager()),
            Resource::ManagerNic => format!("{}/EthernetInterfaces/1", manager()),
            Resource::MediaDrives => media_below_root(profile),
            Resource::MediaDrive(index) => media_drive_below_root(profile, *index),
            Resource::InsertMedia(index) => {
                format!(
                    "{}/Actions/VirtualMedia.InsertMedia",
                    media_drive_below_root(profile, *index)
                )
            }
            Resource::EjectMedia(index) => {
                format!(
                    "{}/Actions/VirtualMedia.EjectMedia",
                    media_drive_below_root(profile, *index)
                )
            }
            Resource::Logs => format!("{}/LogServices", manager()),
            Resource::Log => log(),
            Resource::LogEntries => format!("{}/Entries", log()),
            Resource::LogEntry(id) => format!("{}/Entries/{id}", log()),
            Resource::ClearLog => format!("{}/Actions/LogService.ClearLog", log()),
            Resource::AllChassis => "Chassis".to_owned(),
            Resource::Chassis => chassis(),
            Resource::Thermal => format!("{}/Thermal", chassis()),
            Resource::Power => format!("{}/Power", chassis()),
            Resource::Sensors => format!("{}/Sensors", chassis()),
            Resource::Sensor(index) => {
                format!(
                    "{}/Sensors/{}",
                    chassis(),
                    SENSORS.get(*index).map(|sensor| sensor.id()).unwrap_or_default()
                )
            }
            Resource::UpdateService => "UpdateService".to_owned(),
            Resource::FirmwareInventory => "UpdateService/FirmwareInventory".to_owned(),
            Resource::Firmware(index) => {
                format!("UpdateService/FirmwareInventory/{}", FIRMWARE.get(*index).unwrap_or(&""))
            }
            Resource::TaskService => "TaskService".to_owned(),
            Resource::Tasks => "TaskService/Tasks".to_owned(),
            Resource::Task(id) => format!("TaskService/Tasks/{id}"),
            Resource::TaskMonitor(id) => format!("TaskService/TaskMonitors/{id}"),
        }
    }

    fn find_below_root(below: &str, face: &RedfishFace) -> Option<Resource> {
        // The last segment may be the id of a session, task or log entry. All other paths are compared with those of all resources.
        let id = below.rsplit('/').next().unwrap_or_default();
        let number = id.parse::<u32>().ok();
        let coming_and_going = number.into_iter().flat_map(|id| {
            let entry = u16::try_from(id).ok().map(Resource::LogEntry);
            [Resource::Session(id), Resource::Task(id), Resource::TaskMonitor(id)]
                .into_iter()
                .chain(entry)
        });
        let mut candidates = Resource::all(face).chain(coming_and_going);
        candidates
            .find(|resource| resource.exists(face) && resource.below_root(face.profile) == below)
    }

    /// All resources that depend only on the machine and its profile, including those that the profile leaves out.
    pub(crate) fn all(face: &RedfishFace) -> impl Iterator<Item = Resource> {
        let drives = face.profile.media.as_ref().map_or(0, |media| media.drives.len());
        FIXED
            .into_iter()
            .chain((0..face.processor_count()).map(Resource::Processor))
            .chain((0..face.dimm_count()).map(Resource::Dimm))
            .chain((0..face.machine.spec().disks.len()).map(Resource::Drive))
            .chain((0..face.machine.spec().nics.len()).map(Resource::Nic))
            .chain((0..drives).map(Resource::MediaDrive))
            .chain((0..drives).map(Resource::InsertMedia))
            .chain((0..drives).map(Resource::EjectMedia))
            .chain((0..SENSORS.len()).map(Resource::Sensor))
            .chain((0..FIRMWARE.len()).map(Resource::Firmware))
    }

    /// Whether the profile has this kind of resource.
    pub(crate) fn exists(&self, face: &RedfishFace) -> bool {
        let profile = face.profile;
        match self {
            Resource::Versions
            | Resource::Root
            | Resource::OData
            | Resource::Metadata
            | Resource::Systems
            | Resource::System
            | Resource::Reset
            | Resource::Managers
            | Resource::Manager => true,
            Resource::SessionService | Resource::Sessions | Resource::Session(_) => {
                profile.has(Part::Sessions)
            }
            Resource::AccountService
            | Resource::Accounts
            | Resource::Account
            | Resource::Roles
            | Resource::Role => profile.has(Part::Accounts),
            Resource::SystemSettings => profile.boot.settings.is_some(),
            Resource::ResetActionInfo => profile.reset.told_by == ResetValuesSource::ActionInfo,
            Resource::Processors | Resource::Processor(_) => profile.has(Part::Processors),
            Resource::Dimms | Resource::Dimm(_) => profile.has(Part::Memory),
            Resource::StorageUnits | Resource::Storage | Resource::Drive(_) | Resource::Volumes => {
                profile.has(Part::Storage)
            }
            Resource::Nics | Resource::Nic(_) => profile.has(Part::Nics),
            Resource::ManagerNics | Resource::ManagerNic => profile.has(Part::ManagerNics),
            Resource::MediaDrives | Resource::MediaDrive(_) => profile.media.is_some(),
            Resource::InsertMedia(_) | Resource::EjectMedia(_) => {
                profile.media.as_ref().is_some_and(|media| media.changed_by == MediaChange::Actions)
            }
            Resource::Logs
            | Resource::Log
            | Resource::LogEntries
            | Resource::LogEntry(_)
            | Resource::ClearLog => profile.has(Part::Logs),
            Resource::AllChassis | Resource::Chassis => profile.has(Part::Chassis),
            Resource::Thermal | Resource::Power => profile.has(Part::ThermalAndPower),
            Resource::Sensors | Resource::Sensor(_) => profile.has(Part::Sensors),
            Resource::UpdateService | Resource::FirmwareInventory | Resource::Firmware(_) => {
                profile.has(Part::Updates)
            }
            Resource::TaskService
            | Resource::Tasks
            | Resource::Task(_)
            | Resource::TaskMonitor(_) => profile.has(Part::Tasks),
        }
    }

    /// DSP0266 §13.3.1: the few resources that need no authentication.
    pub(crate) fn is_public(&self, method: &Method) -> bool {
        matches!(self, Resource::Versions | Resource::Root | Resource::OData | Resource::Metadata)
            || (*self == Resource::Sessions && *method == Method::POST)
    }

    /// The methods that the resource allows.
    pub(crate) fn methods(&self, face: &RedfishFace) -> &'static [&'static str] {
        use Resource::{
            ClearLog, EjectMedia, InsertMedia, MediaDrive, Reset, Session, SessionService, System,
        };
        let patched_media =
            face.profile.media.as_ref().is_some_and(|media| media.changed_by == MediaChange::Patch);
        if *self == Resource::Sessions {
            &["GET", "HEAD", "POST"]
        } else if matches!(self, Session(_)) {
            &["GET", "HEAD", "DELETE"]
        } else if matches!(self, Reset | InsertMedia(_) | EjectMedia(_) | ClearLog) {
            &["POST"]
        } else if matches!(self, System | Resource::SystemSettings | SessionService)
            || (patched_media && matches!(self, MediaDrive(_)))
        {
            &["GET", "HEAD", "PATCH"]
        } else {
            &["GET", "HEAD"]
        }
    }
}

/// The resources that exist once.
const FIXED: [Resource; 40] = [
    Resource::Versions,
    Resource::Root,
    Resource::OData,
    Resource::Metadata,
    Resource::SessionService,
    Resource::Sessions,
    Resource::AccountService,
    Resource::Accounts,
    Resource::Account,
    Resource::Roles,
    Resource::Role,
    Resource::Systems,
    Resource::System,
    Resource::SystemSettings,
    Resource::ResetActionInfo,
    Resource::Reset,
    Resource::Processors,
    Resource::Dimms,
    Resource::StorageUnits,
    Resource::Storage,
    Resource::Volumes,
    Resource::Nics,
    Resource::Managers,
    Resource::Manager,
    Resource::ManagerNics,
    Resource::ManagerNic,
    Resource::MediaDrives,
    Resource::Logs,
    Resource::Log,
    Resource::LogEntries,
    Resource::ClearLog,
    Resource::AllChassis,
    Resource::Chassis,
    Resource::Thermal,
    Resource::Power,
    Resource::Sensors,
    Resource::UpdateService,
    Resource::FirmwareInventory,
    Resource::TaskService,
    Resource::Tasks,
];

/// An id with its number inserted. Numbers count from 1.
fn numbered(template: &str, index: usize) -> String {
    template.replace("{n}", &(index + 1).to_string())
}

fn media_below_root(profile: &Profile) -> String {
    match profile.media.as_ref().map(|media| media.under) {
        Some(MediaPlace::System) => format!("Systems/{}/VirtualMedia", profile.ids.system),
        Some(MediaPlace::Manager) | None => {
            format!("Managers/{}/VirtualMedia", profile.ids.manager)
        }
    }
}

fn media_drive_below_root(profile: &Profile, index: usize) -> String {
    let id = profile
        .media
        .as_ref()
        .and_then(|media| media.drives.get(index))
        .map(|drive| drive.id.as_str());
    format!("{}/{}", media_below_root(profile), id.unwrap_or_default())
}
