//! The enumerations of the schemas (DSP8010) that requests use.

use crate::boot::BootDevice;
use crate::log::PowerRequest;
use crate::spec::Firmware;

/// `ResetType` of the Resource schema: the request, and the power that the machine has afterwards if this is certain.
pub(crate) const RESET_TYPES: [(&str, PowerRequest, Option<bool>); 9] = [
    ("On", PowerRequest::On, Some(true)),
    ("ForceOn", PowerRequest::On, Some(true)),
    ("ForceOff", PowerRequest::ForceOff, Some(false)),
    ("GracefulShutdown", PowerRequest::SoftOff, Some(false)),
    ("GracefulRestart", PowerRequest::SoftRestart, None),
    ("ForceRestart", PowerRequest::ForceRestart, None),
    ("PowerCycle", PowerRequest::Cycle, None),
    ("PushPowerButton", PowerRequest::PushButton, None),
    ("Nmi", PowerRequest::Interrupt, None),
];

/// `BootSource` of the ComputerSystem schema.
pub(crate) const BOOT_TARGETS: [(&str, Option<BootDevice>); 9] = [
    ("None", None),
    ("Pxe", Some(BootDevice::Pxe)),
    ("Floppy", Some(BootDevice::Floppy)),
    ("Cd", Some(BootDevice::Cdrom)),
    ("Usb", Some(BootDevice::Usb)),
    ("Hdd", Some(BootDevice::Disk)),
    ("BiosSetup", Some(BootDevice::Setup)),
    ("Diags", Some(BootDevice::Diagnostics)),
    ("UefiHttp", Some(BootDevice::Http)),
];

/// `RAIDType` of the Volume schema, and the `VolumeType` that volumes had before version 1.3.1.
pub(crate) const VOLUME_TYPES: [(&str, &str); 5] = [
    ("RAID0", "NonRedundant"),
    ("RAID1", "Mirrored"),
    ("RAID5", "StripedWithParity"),
    ("RAID10", "SpannedMirrors"),
    ("RAID50", "SpannedStripesWithParity"),
];

/// `BootSourceOverrideMode` of the ComputerSystem schema.
pub(crate) fn mode_name(mode: Firmware) -> &'static str {
    match mode {
        Firmware::Bios => "Legacy",
        Firmware::Uefi => "UEFI",
    }
}
