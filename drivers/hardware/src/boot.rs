//! Boot devices, boot modes and boot overrides.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

words::words! {
    /// The device that the firmware boots from, with its name in the Bare Metal API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum BootDevice {
        /// The network, by DHCP and TFTP.
        Pxe = "pxe",
        /// The network, by DHCP and HTTP (UEFI 2.5 §23.7); spelled `uefihttp` by the Bare Metal API.
        #[serde(rename = "uefihttp")]
        Http = "uefihttp",
        /// The first disk.
        Disk = "disk",
        /// The CD drive, also a virtual one.
        Cdrom = "cdrom",
        /// The firmware's setup screen.
        Bios = "bios",
    }
}

impl FromStr for BootDevice {
    type Err = UnknownBootDevice;

    fn from_str(raw: &str) -> Result<Self, UnknownBootDevice> {
        BootDevice::find(raw)
            .ok_or_else(|| UnknownBootDevice { raw: raw.chars().take(64).collect() })
    }
}

/// The text names no boot device.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{raw:?} is not a boot device")]
pub struct UnknownBootDevice {
    /// The text, cut to 64 characters.
    pub raw: String,
}

words::words! {
    /// The interface between firmware and operating system at boot, with its name in the Bare Metal API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum BootMode {
        /// The PC BIOS, or UEFI's compatibility support module.
        Bios = "bios",
        Uefi = "uefi",
    }
}

/// For how long a boot override holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Persistence {
    /// For the next boot only.
    Once,
    /// Until it is changed.
    Continuous,
}

/// A boot order that the BMC imposes on the firmware.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BootOverride {
    pub device: BootDevice,
    pub persistence: Persistence,
    /// `None` leaves the firmware's boot mode as it is.
    pub mode: Option<BootMode>,
}

#[cfg(test)]
mod tests {
    use serde::de::IntoDeserializer;
    use serde::de::value::{Error, StrDeserializer};

    use super::*;

    fn read<'a, T: Deserialize<'a>>(name: &'a str) -> Result<T, Error> {
        let name: StrDeserializer<'a, Error> = name.into_deserializer();
        T::deserialize(name)
    }

    #[test]
    fn boot_devices_have_the_names_of_the_bare_metal_api() {
        let names = [
            (BootDevice::Pxe, "pxe"),
            (BootDevice::Http, "uefihttp"),
            (BootDevice::Disk, "disk"),
            (BootDevice::Cdrom, "cdrom"),
            (BootDevice::Bios, "bios"),
        ];
        for (device, name) in names {
            assert_eq!(device.to_string(), name);
            assert_eq!(name.parse(), Ok(device));
            assert_eq!(read(name), Ok(device));
        }
        assert_eq!(BootDevice::ALL, names.map(|(device, _)| device));
        let refused = "floppy".parse::<BootDevice>().unwrap_err();
        assert_eq!(refused.to_string(), "\"floppy\" is not a boot device");
    }

    #[test]
    fn boot_modes_have_the_names_of_the_bare_metal_api() {
        for (mode, name) in [(BootMode::Bios, "bios"), (BootMode::Uefi, "uefi")] {
            assert_eq!(mode.to_string(), name);
            assert_eq!(read(name), Ok(mode));
        }
    }
}
