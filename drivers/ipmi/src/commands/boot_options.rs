//! System boot options: the device of the next boot (IPMI 2.0 §28.12 to §28.14).

use hardware::{BootDevice, BootMode, BootOverride, Persistence};

use crate::wire::{Malformed, Reader};

use super::{CHASSIS, Command};

const BOOT_FLAGS: u8 = 5;
const VALID: u8 = 0x80;
const PERSISTENT: u8 = 0x40;
const EFI: u8 = 0x20;

/// Set System Boot Options (IPMI 2.0 §28.12, parameters of table 28-14).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetBootOptions {
    /// Parameter 0: announces a change of the options, so that no other client changes them.
    InProgress,
    /// Parameter 0: the change of the options is complete.
    Complete,
    /// Parameter 3: keep the flags even if the machine is not restarted within a minute.
    KeepFlags,
    /// Parameter 4: the firmware has not yet handled the options that follow.
    Acknowledge,
    /// Parameter 5: the boot device. Bits are those of table 28-14.
    Flags { device: u8, persistence: Persistence, mode: Option<BootMode> },
}

impl SetBootOptions {
    /// Makes the flags for `wanted`; `None` if IPMI has no number for the device.
    pub(crate) fn flags(wanted: BootOverride) -> Option<Self> {
        let device = match wanted.device {
            BootDevice::Pxe => 0b0001,
            BootDevice::Disk => 0b0010,
            BootDevice::Cdrom => 0b0101,
            BootDevice::Bios => 0b0110,
            BootDevice::Http => return None,
        };
        let (persistence, mode) = (wanted.persistence, wanted.mode);
        Some(SetBootOptions::Flags { device, persistence, mode })
    }
}

impl Command for SetBootOptions {
    const NAME: &'static str = "Set System Boot Options";
    const CODE: (u8, u8) = (CHASSIS, 0x08);
    type Answer = ();

    fn data(&self) -> Vec<u8> {
        match self {
            SetBootOptions::InProgress => vec![0, 1],
            SetBootOptions::Complete => vec![0, 0],
            SetBootOptions::KeepFlags => vec![3, 0x08],
            SetBootOptions::Acknowledge => vec![4, 1, 1],
            SetBootOptions::Flags { device, persistence, mode } => {
                let mut flags = VALID;
                if *persistence == Persistence::Continuous {
                    flags |= PERSISTENT;
                }
                if *mode == Some(BootMode::Uefi) {
                    flags |= EFI;
                }
                vec![BOOT_FLAGS, flags, device << 2, 0, 0, 0]
            }
        }
    }

    fn read(&self, _answer: &mut Reader<'_>) -> Result<(), Malformed> {
        Ok(())
    }
}

/// Get System Boot Options (IPMI 2.0 §28.13), parameter 5: the override in force.
pub(crate) struct GetBootFlags;

impl Command for GetBootFlags {
    const NAME: &'static str = "Get System Boot Options";
    const CODE: (u8, u8) = (CHASSIS, 0x09);
    type Answer = Option<BootOverride>;

    fn data(&self) -> Vec<u8> {
        vec![BOOT_FLAGS, 0, 0]
    }

    fn read(&self, answer: &mut Reader<'_>) -> Result<Option<BootOverride>, Malformed> {
        let [_version, parameter, flags, device]: [u8; 4] = answer.array()?;
        let parameter_is_locked = parameter & 0x80 != 0;
        if flags & VALID == 0 || parameter_is_locked {
            return Ok(None);
        }
        let device = match device >> 2 & 0b1111 {
            0b0001 => BootDevice::Pxe,
            0b0010 | 0b0011 | 0b1011 => BootDevice::Disk,
            0b0101 | 0b1000 => BootDevice::Cdrom,
            0b0110 => BootDevice::Bios,
            _ => return Ok(None),
        };
        let persistence =
            if flags & PERSISTENT != 0 { Persistence::Continuous } else { Persistence::Once };
        let mode = if flags & EFI != 0 { BootMode::Uefi } else { BootMode::Bios };
        Ok(Some(BootOverride { device, persistence, mode: Some(mode) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(device: BootDevice, persistence: Persistence, mode: Option<BootMode>, want: &str) {
        let wanted = BootOverride { device, persistence, mode };
        let command = SetBootOptions::flags(wanted).unwrap();
        assert_eq!(hex::encode(command.data()), want);
    }

    #[test]
    fn flags_are_those_ipmitool_sends() {
        let uefi = Some(BootMode::Uefi);
        check(BootDevice::Pxe, Persistence::Once, None, "058004000000");
        check(BootDevice::Pxe, Persistence::Once, uefi, "05a004000000");
        check(BootDevice::Disk, Persistence::Continuous, uefi, "05e008000000");
        check(BootDevice::Cdrom, Persistence::Once, Some(BootMode::Bios), "058014000000");
        check(BootDevice::Bios, Persistence::Continuous, None, "05c018000000");
    }

    #[test]
    fn ipmi_has_no_number_for_http() {
        let persistence = Persistence::Once;
        let wanted = BootOverride { device: BootDevice::Http, persistence, mode: None };
        assert_eq!(SetBootOptions::flags(wanted), None);
    }

    #[test]
    fn an_override_is_read_back_unless_it_is_invalid_or_none() {
        let read = |hexadecimal: &str| {
            let bytes = hex::decode(hexadecimal).unwrap();
            GetBootFlags.read(&mut Reader::new(&bytes))
        };
        let want = BootOverride {
            device: BootDevice::Disk,
            persistence: Persistence::Continuous,
            mode: Some(BootMode::Uefi),
        };
        assert_eq!(read("0105e008000000"), Ok(Some(want)));
        assert_eq!(read("01056008000000"), Ok(None));
        assert_eq!(read("0185e008000000"), Ok(None));
        assert_eq!(read("01058000000000"), Ok(None));
        assert!(read("0105e0").is_err());
    }
}
