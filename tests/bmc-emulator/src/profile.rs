//! Profiles, which describe how families of BMCs differ: the types of `profiles/*.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::Deserialize;

use crate::boot::BootDevice;
use crate::log::PowerRequest;
use crate::machine::Power;

/// All profiles with their names.
const SOURCES: [(&str, &str); 7] = [
    ("generic", include_str!("../profiles/generic.yaml")),
    ("dell-idrac", include_str!("../profiles/dell-idrac.yaml")),
    ("hpe-ilo", include_str!("../profiles/hpe-ilo.yaml")),
    ("supermicro", include_str!("../profiles/supermicro.yaml")),
    ("lenovo-xcc", include_str!("../profiles/lenovo-xcc.yaml")),
    ("ami-megarac", include_str!("../profiles/ami-megarac.yaml")),
    ("poor", include_str!("../profiles/poor.yaml")),
];

static PROFILES: LazyLock<BTreeMap<&str, Profile>> = LazyLock::new(|| {
    let parse =
        |source| serde_saphyr::from_str(source).expect("a test parses every embedded profile");
    SOURCES.iter().map(|(name, source)| (*name, parse(source))).collect()
});

/// The behaviour of one family, shared by all machines of the family.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Profile {
    pub(crate) vendor: Option<String>,
    pub(crate) product: String,
    pub(crate) redfish_version: String,
    pub(crate) bmc_firmware: String,
    pub(crate) bios_version: String,
    pub(crate) ids: Ids,
    /// The optional parts of the Redfish tree that exist.
    pub(crate) parts: BTreeSet<Part>,
    /// Whether links end with a slash.
    #[serde(default)]
    pub(crate) trailing_slash: bool,
    /// How a PATCH must use `If-Match`.
    pub(crate) if_match: IfMatch,
    pub(crate) sessions: SessionRules,
    pub(crate) reset: ResetRules,
    pub(crate) boot: BootRules,
    #[serde(default)]
    pub(crate) media: Option<MediaRules>,
    pub(crate) ipmi: IpmiRules,
}

/// Identifiers in paths. `{n}` counts from 1.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ids {
    pub(crate) system: String,
    pub(crate) manager: String,
    pub(crate) chassis: String,
    pub(crate) storage: String,
    pub(crate) drive: String,
    pub(crate) nic: String,
    pub(crate) processor: String,
    pub(crate) dimm: String,
    pub(crate) log: String,
}

/// A part of the Redfish tree that a service may leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Part {
    Sessions,
    Accounts,
    Chassis,
    /// `Thermal` and `Power` under the chassis, deprecated since 2020.4, which most machines have.
    ThermalAndPower,
    /// `Sensors` under the chassis.
    Sensors,
    Storage,
    Processors,
    Memory,
    Nics,
    ManagerNics,
    Logs,
    Updates,
    Tasks,
    IndicatorLed,
    /// `Links` in the system, manager and chassis.
    Links,
}

/// DSP0266 §6.5: entity tags against lost updates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IfMatch {
    /// The service has no entity tags.
    Ignored,
    /// The service answers 412 to a tag that does not match.
    Honoured,
    /// The service also answers 428 to a request without a tag.
    Required,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionRules {
    pub(crate) slots: usize,
    pub(crate) timeout_seconds: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResetRules {
    pub(crate) types: Vec<ResetType>,
    pub(crate) told_by: ResetValuesSource,
    pub(crate) answer: ResetAnswer,
    /// The refusal if the machine has the requested state already. Without a refusal, the request succeeds.
    #[serde(default)]
    pub(crate) already_so: Option<Refusal>,
}

/// `ResetType` of the Resource schema (DSP8010).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum ResetType {
    On,
    ForceOn,
    ForceOff,
    GracefulShutdown,
    GracefulRestart,
    ForceRestart,
    PowerCycle,
    PushPowerButton,
    Nmi,
}

/// Where a client finds the values of `ResetType` (DSP0266 §7.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResetValuesSource {
    AllowableValues,
    ActionInfo,
    Nowhere,
}

/// The answer to a successful reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResetAnswer {
    /// Status 204.
    NoContent,
    /// Status 200 with a success message.
    Message,
    /// Status 202 with a task and its monitor.
    Task,
}

/// A vendor's own error answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) message_id: String,
    pub(crate) message: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct BootRules {
    pub(crate) targets: Vec<BootTarget>,
    /// Whether the service lists `…@Redfish.AllowableValues`.
    pub(crate) tells_allowable: bool,
    /// Whether `BootSourceOverrideMode` exists.
    pub(crate) has_mode: bool,
    /// Whether an override may be `Continuous`.
    pub(crate) continuous: bool,
    /// Whether `HttpBootUri` exists.
    pub(crate) http_uri: bool,
    /// The id of the resource that takes changes instead of the system itself (`@Redfish.Settings`, DSP0266 §7.10).
    #[serde(default)]
    pub(crate) settings: Option<String>,
}

/// `BootSource` of the ComputerSystem schema (DSP8010).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) enum BootTarget {
    None,
    Pxe,
    Floppy,
    Cd,
    Usb,
    Hdd,
    BiosSetup,
    Diags,
    UefiHttp,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MediaRules {
    pub(crate) under: MediaPlace,
    pub(crate) drives: Vec<MediaDrive>,
    pub(crate) changed_by: MediaChange,
    /// The refusal of an image for a drive that holds one. Without a refusal, the new image replaces the old one.
    #[serde(default)]
    pub(crate) full: Option<Refusal>,
    /// The refusal to eject from an empty drive. Without a refusal, the request succeeds.
    #[serde(default)]
    pub(crate) empty: Option<Refusal>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MediaPlace {
    Manager,
    System,
}

/// A virtual drive of the BMC.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MediaDrive {
    pub(crate) id: String,
    /// `MediaType` of the VirtualMedia schema (DSP8010).
    pub(crate) types: Vec<String>,
}

/// How a client inserts an image into a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum MediaChange {
    /// With the actions InsertMedia and EjectMedia.
    Actions,
    /// With a PATCH of `Image`.
    Patch,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IpmiRules {
    /// The IANA enterprise number of the manufacturer.
    pub(crate) manufacturer_id: u32,
    pub(crate) product_id: u16,
    pub(crate) firmware: (u8, u8),
    pub(crate) cipher_suites: Vec<u8>,
    pub(crate) session_slots: usize,
    /// §6.12.15: 60 seconds, give or take three.
    pub(crate) session_timeout_seconds: u64,
    /// How long boot flags stay valid without a chassis command (table 28-14, parameter 3). 0 means for ever.
    pub(crate) boot_flags_timeout_seconds: u64,
    /// Serial over LAN. `None` if the BMC does not support it.
    #[serde(default)]
    pub(crate) serial: Option<SerialRules>,
}

/// How a BMC passes on the serial port (chapter 15).
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SerialRules {
    /// The longest payload in each direction, including its header of four bytes.
    pub(crate) payload_bytes: u16,
    /// How often an unacknowledged packet is sent again, and after how many milliseconds (table 26-5, parameter 4).
    pub(crate) retries: u8,
    pub(crate) retry_millis: u16,
}

impl Profile {
    /// The profile of this name.
    pub(crate) fn find(name: &str) -> Option<&'static Profile> {
        PROFILES.get(name)
    }

    /// All names, for an error message.
    pub(crate) fn names() -> String {
        SOURCES.map(|(name, _)| name).join(", ")
    }

    pub(crate) fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
    }
}

impl MediaDrive {
    pub(crate) fn is_cd(&self) -> bool {
        self.types.iter().any(|media_type| media_type == "CD")
    }
}

impl ResetType {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            ResetType::On => "On",
            ResetType::ForceOn => "ForceOn",
            ResetType::ForceOff => "ForceOff",
            ResetType::GracefulShutdown => "GracefulShutdown",
            ResetType::GracefulRestart => "GracefulRestart",
            ResetType::ForceRestart => "ForceRestart",
            ResetType::PowerCycle => "PowerCycle",
            ResetType::PushPowerButton => "PushPowerButton",
            ResetType::Nmi => "Nmi",
        }
    }

    pub(crate) fn request(self) -> PowerRequest {
        match self {
            ResetType::On | ResetType::ForceOn => PowerRequest::On,
            ResetType::ForceOff => PowerRequest::ForceOff,
            ResetType::GracefulShutdown => PowerRequest::SoftOff,
            ResetType::GracefulRestart => PowerRequest::SoftRestart,
            ResetType::ForceRestart => PowerRequest::ForceRestart,
            ResetType::PowerCycle => PowerRequest::Cycle,
            ResetType::PushPowerButton => PowerRequest::PushButton,
            ResetType::Nmi => PowerRequest::Interrupt,
        }
    }

    /// Whether the machine has the requested state already.
    pub(crate) fn is_already_so(self, power: Power) -> bool {
        match self {
            ResetType::On | ResetType::ForceOn => power.on,
            ResetType::ForceOff | ResetType::GracefulShutdown => !power.on,
            ResetType::GracefulRestart
            | ResetType::ForceRestart
            | ResetType::PowerCycle
            | ResetType::PushPowerButton
            | ResetType::Nmi => false,
        }
    }
}

impl BootTarget {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            BootTarget::None => "None",
            BootTarget::Pxe => "Pxe",
            BootTarget::Floppy => "Floppy",
            BootTarget::Cd => "Cd",
            BootTarget::Usb => "Usb",
            BootTarget::Hdd => "Hdd",
            BootTarget::BiosSetup => "BiosSetup",
            BootTarget::Diags => "Diags",
            BootTarget::UefiHttp => "UefiHttp",
        }
    }

    pub(crate) fn device(self) -> Option<BootDevice> {
        match self {
            BootTarget::None => None,
            BootTarget::Pxe => Some(BootDevice::Pxe),
            BootTarget::Floppy => Some(BootDevice::Floppy),
            BootTarget::Cd => Some(BootDevice::Cdrom),
            BootTarget::Usb => Some(BootDevice::Usb),
            BootTarget::Hdd => Some(BootDevice::Disk),
            BootTarget::BiosSetup => Some(BootDevice::Setup),
            BootTarget::Diags => Some(BootDevice::Diagnostics),
            BootTarget::UefiHttp => Some(BootDevice::Http),
        }
    }

    pub(crate) fn of(device: BootDevice) -> BootTarget {
        match device {
            BootDevice::Pxe => BootTarget::Pxe,
            BootDevice::Http => BootTarget::UefiHttp,
            BootDevice::Disk => BootTarget::Hdd,
            BootDevice::Cdrom => BootTarget::Cd,
            BootDevice::Usb => BootTarget::Usb,
            BootDevice::Floppy => BootTarget::Floppy,
            BootDevice::Setup => BootTarget::BiosSetup,
            BootDevice::Diagnostics => BootTarget::Diags,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_embedded_profile_can_be_read() {
        for (name, source) in SOURCES {
            let read: Result<Profile, _> = serde_saphyr::from_str(source);
            assert!(read.is_ok(), "profiles/{name}.yaml: {}", read.unwrap_err());
        }
    }

    #[test]
    fn every_profile_can_switch_on_and_off_and_boot_the_network() {
        for (name, _) in SOURCES {
            let profile = Profile::find(name).unwrap();
            assert!(profile.reset.types.contains(&ResetType::On), "{name}");
            assert!(profile.reset.types.contains(&ResetType::ForceOff), "{name}");
            assert!(profile.boot.targets.contains(&BootTarget::Pxe), "{name}");
            assert!(profile.ipmi.cipher_suites.contains(&17), "{name}");
        }
    }
}
