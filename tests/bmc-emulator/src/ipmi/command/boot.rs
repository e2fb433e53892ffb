//! System boot options (IPMI 2.0 §28.12, §28.13 and table 28-14).

use std::time::Duration;

use tokio::time::Instant;

use crate::boot::{BootDevice, BootOverride, OverrideDuration};
use crate::ipmi::command::{Answer, Call, CompletionCode};
use crate::ipmi::face::IpmiFace;
use crate::log::Protocol;
use crate::spec::Firmware;

/// The only version of the parameters.
const PARAMETER_VERSION: u8 = 0x01;

/// Bits in the first byte of parameter 5.
const VALID: u8 = 0x80;
const PERSISTENT: u8 = 0x40;
const EFI: u8 = 0x20;
/// The bits of the device selector in the second byte of parameter 5.
const DEVICE: u8 = 0x3C;
/// A bit of parameter 3: the valid bit stays although no chassis control command comes within 60 seconds.
const KEEP_PAST_TIMEOUT: u8 = 0x08;

/// Completion codes of §28.12 and §28.13.
const PARAMETER_NOT_SUPPORTED: CompletionCode = CompletionCode(0x80);
const ALREADY_IN_PROGRESS: CompletionCode = CompletionCode(0x81);

impl IpmiFace {
    pub(super) fn set_system_boot_options(&mut self, call: &Call<'_>) -> Answer {
        let parameter = call.byte(0)? & 0x7F;
        if parameter > 6 {
            return Err(PARAMETER_NOT_SUPPORTED);
        }
        let invalid = 1 << parameter;
        self.boot.invalid = if call.byte(0)? & 0x80 == 0 {
            self.boot.invalid & !invalid
        } else {
            self.boot.invalid | invalid
        };
        let [_, data @ ..] = call.data else { return Err(CompletionCode::DATA_LENGTH) };
        if data.is_empty() {
            // A client may set the lock bit alone.
            return Ok(vec![]);
        }
        match parameter {
            0 => self.set_in_progress(call.byte(1)?)?,
            1 => self.boot.service_partition = call.byte(1)?,
            2 => self.boot.service_partition_scan = call.byte(1)? & 0x03,
            3 => self.boot.clearing = call.byte(1)? & 0x1F,
            4 => {
                let mask = call.byte(1)?;
                self.boot.acknowledged = self.boot.acknowledged & !mask | call.byte(2)? & mask;
            }
            5 => {
                let flags = data.first_chunk().ok_or(CompletionCode::DATA_LENGTH)?;
                return self.set_boot_flags(*flags);
            }
            _ => self.boot.initiator = *data.first_chunk().ok_or(CompletionCode::DATA_LENGTH)?,
        }
        self.record_other(format!("boot option parameter {parameter}"));
        Ok(vec![])
    }

    pub(super) fn get_system_boot_options(&mut self, call: &Call<'_>) -> Answer {
        let parameter = call.byte(0)? & 0x7F;
        call.byte(2)?;
        let data: Vec<u8> = match parameter {
            0 => vec![self.boot.in_progress],
            1 => vec![self.boot.service_partition],
            2 => vec![self.boot.service_partition_scan],
            3 => vec![self.boot.clearing],
            // The write mask reads as zero.
            4 => vec![0x00, self.boot.acknowledged],
            5 => self.boot_flags().to_vec(),
            6 => self.boot.initiator.to_vec(),
            _ => return Err(PARAMETER_NOT_SUPPORTED),
        };
        let lock = if self.boot.invalid & 1 << parameter == 0 { 0x00 } else { 0x80 };
        Ok([&[PARAMETER_VERSION, lock | parameter], data.as_slice()].concat())
    }

    /// Takes or frees the lock between two writers. A writer that finds the lock taken has to wait.
    fn set_in_progress(&mut self, state: u8) -> Result<(), CompletionCode> {
        match (state & 0x03, self.boot.in_progress) {
            (0, _) => self.boot.in_progress = 0,
            (1, 0) => self.boot.in_progress = 1,
            (1, _) => return Err(ALREADY_IN_PROGRESS),
            // "Commit write" is optional and not implemented.
            _ => return Err(CompletionCode::INVALID_DATA),
        }
        Ok(())
    }

    fn set_boot_flags(&mut self, flags: [u8; 5]) -> Answer {
        let valid = flags[0] & VALID != 0;
        let lasting = if flags[0] & PERSISTENT == 0 {
            OverrideDuration::Once
        } else {
            OverrideDuration::Always
        };
        let device = match device_of(flags[1] & DEVICE) {
            Ok(device) => device.filter(|_| valid),
            Err(refused) => return Err(refused),
        };
        let boot = device.map(|device| BootOverride {
            device,
            lasting,
            mode: Some(if flags[0] & EFI == 0 { Firmware::Bios } else { Firmware::Uefi }),
            http_uri: None,
            lapses_at: self.lapse(lasting),
        });
        self.boot.flags = flags;
        self.machine.set_boot(Protocol::Ipmi, boot);
        Ok(vec![])
    }

    /// When flags for one boot expire unless a chassis control command comes first.
    fn lapse(&self, lasting: OverrideDuration) -> Option<Instant> {
        let seconds = self.profile.ipmi.boot_flags_timeout_seconds;
        let lapses = lasting == OverrideDuration::Once
            && self.boot.clearing & KEEP_PAST_TIMEOUT == 0
            && seconds > 0;
        lapses.then(|| Instant::now() + Duration::from_secs(seconds))
    }

    /// The current boot flags, regardless of whether IPMI or Redfish set them.
    fn boot_flags(&self) -> [u8; 5] {
        let mut flags = self.boot.flags;
        match self.machine.boot_override() {
            Some(boot) => {
                let lasting = if boot.lasting == OverrideDuration::Always { PERSISTENT } else { 0 };
                let efi = if boot.mode == Some(Firmware::Uefi) { EFI } else { 0 };
                flags[0] = VALID | lasting | efi;
                flags[1] = flags[1] & !DEVICE | selector_of(boot.device);
            }
            // Used or expired flags keep everything but the valid bit.
            None if flags[1] & DEVICE != 0 => flags[0] &= !VALID,
            None => {}
        }
        flags
    }
}

/// The device of a selector, which is bits 5 to 2 of the second byte.
fn device_of(selector: u8) -> Result<Option<BootDevice>, CompletionCode> {
    match selector >> 2 {
        0x0 => Ok(None),
        0x1 => Ok(Some(BootDevice::Pxe)),
        // The default disk, the default disk in safe mode, and a remote disk.
        0x2 | 0x3 | 0xB => Ok(Some(BootDevice::Disk)),
        0x4 => Ok(Some(BootDevice::Diagnostics)),
        // The CD drive and a remote CD drive.
        0x5 | 0x8 => Ok(Some(BootDevice::Cdrom)),
        0x6 => Ok(Some(BootDevice::Setup)),
        0x7 | 0xF => Ok(Some(BootDevice::Floppy)),
        0x9 => Ok(Some(BootDevice::Usb)),
        _ => Err(CompletionCode::INVALID_DATA),
    }
}

/// The selector of a device. HTTP boot has none, because only Redfish can request it.
fn selector_of(device: BootDevice) -> u8 {
    let selector = match device {
        BootDevice::Http => 0x0,
        BootDevice::Pxe => 0x1,
        BootDevice::Disk => 0x2,
        BootDevice::Diagnostics => 0x4,
        BootDevice::Cdrom => 0x5,
        BootDevice::Setup => 0x6,
        BootDevice::Usb => 0x9,
        BootDevice::Floppy => 0xF,
    };
    selector << 2
}
