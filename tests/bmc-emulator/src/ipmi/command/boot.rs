//! System boot options (IPMI 2.0 §28.12, §28.13 and table 28-14).

use std::time::Duration;

use tokio::time::Instant;

use crate::boot::{BootDevice, BootOverride, Lasting};
use crate::ipmi::IpmiFace;
use crate::ipmi::command::{Answer, Call, Completion};
use crate::log::Face;
use crate::spec::Firmware;

/// The only version of the parameters.
const PARAMETER_VERSION: u8 = 0x01;

/// Parameter 5, first byte.
const VALID: u8 = 0x80;
const PERSISTENT: u8 = 0x40;
const EFI: u8 = 0x20;
/// Parameter 5, second byte: where the device selector is.
const DEVICE: u8 = 0x3C;
/// Parameter 3: the valid bit stays although no chassis control command comes within 60 seconds.
const KEEP_PAST_TIMEOUT: u8 = 0x08;

/// §28.12 and §28.13.
const PARAMETER_NOT_SUPPORTED: Completion = Completion(0x80);
const ALREADY_IN_PROGRESS: Completion = Completion(0x81);

/// The parameters as they were written.
#[derive(Debug, Default)]
pub(crate) struct BootOptions {
    /// Parameter 0.
    in_progress: u8,
    /// Parameter 1.
    service_partition: u8,
    /// Parameter 2.
    service_partition_scan: u8,
    /// Parameter 3.
    clearing: u8,
    /// Parameter 4.
    acknowledged: u8,
    /// Parameter 5; whether it holds is for the machine to know.
    flags: [u8; 5],
    /// Parameter 6.
    initiator: [u8; 9],
    /// Parameters whose lock bit is set, by number.
    invalid: u8,
}

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
        let [_, data @ ..] = call.data else { return Err(Completion::DATA_LENGTH) };
        if data.is_empty() {
            // The lock bit may be set alone.
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
                let flags = data.first_chunk().ok_or(Completion::DATA_LENGTH)?;
                return self.set_boot_flags(*flags);
            }
            _ => self.boot.initiator = *data.first_chunk().ok_or(Completion::DATA_LENGTH)?,
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

    /// Two writers take turns by this: whoever finds it taken must wait.
    fn set_in_progress(&mut self, state: u8) -> Result<(), Completion> {
        match (state & 0x03, self.boot.in_progress) {
            (0, _) => self.boot.in_progress = 0,
            (1, 0) => self.boot.in_progress = 1,
            (1, _) => return Err(ALREADY_IN_PROGRESS),
            // "Commit write" is optional, and not here.
            _ => return Err(Completion::INVALID_DATA),
        }
        Ok(())
    }

    fn set_boot_flags(&mut self, flags: [u8; 5]) -> Answer {
        let valid = flags[0] & VALID != 0;
        let lasting = if flags[0] & PERSISTENT == 0 { Lasting::Once } else { Lasting::Always };
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
        self.machine.set_boot(Face::Ipmi, boot);
        Ok(vec![])
    }

    /// When flags for one boot stop being valid if no chassis control command comes.
    fn lapse(&self, lasting: Lasting) -> Option<Instant> {
        let seconds = self.profile.ipmi.boot_flags_timeout_seconds;
        let lapses =
            lasting == Lasting::Once && self.boot.clearing & KEEP_PAST_TIMEOUT == 0 && seconds > 0;
        lapses.then(|| Instant::now() + Duration::from_secs(seconds))
    }

    /// The flags as they hold now, whichever face imposed them.
    fn boot_flags(&self) -> [u8; 5] {
        let mut flags = self.boot.flags;
        match self.machine.boot_override() {
            Some(boot) => {
                let lasting = if boot.lasting == Lasting::Always { PERSISTENT } else { 0 };
                let efi = if boot.mode == Some(Firmware::Uefi) { EFI } else { 0 };
                flags[0] = VALID | lasting | efi;
                flags[1] = flags[1] & !DEVICE | selector_of(boot.device);
            }
            // Used up or lapsed: only the valid bit goes.
            None if flags[1] & DEVICE != 0 => flags[0] &= !VALID,
            None => {}
        }
        flags
    }
}

/// The device selector, bits 5 to 2 of the second byte.
fn device_of(selector: u8) -> Result<Option<BootDevice>, Completion> {
    match selector >> 2 {
        0x0 => Ok(None),
        0x1 => Ok(Some(BootDevice::Pxe)),
        // The default disk, the same in safe mode, and a remote one.
        0x2 | 0x3 | 0xB => Ok(Some(BootDevice::Disk)),
        0x4 => Ok(Some(BootDevice::Diagnostics)),
        // The CD drive, a remote one included.
        0x5 | 0x8 => Ok(Some(BootDevice::Cdrom)),
        0x6 => Ok(Some(BootDevice::Setup)),
        0x7 | 0xF => Ok(Some(BootDevice::Floppy)),
        0x9 => Ok(Some(BootDevice::Usb)),
        _ => Err(Completion::INVALID_DATA),
    }
}

/// The selector of a device. HTTP boot, which only Redfish can ask for, has none.
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
