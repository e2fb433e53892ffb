//! A machine of the rack: its hardware, its console output and its disk.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use compat::wait::wait_for;
use serde::Deserialize;

const MIB: u64 = 1 << 20;

/// The firmware of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Firmware {
    /// SeaBIOS, with iPXE in the network card.
    Bios,
    /// OVMF with PXE and HTTP boot.
    Uefi,
    /// OVMF without PXE, so that HTTP is the only way to boot from the network.
    Http,
    /// The same with HTTPS and the rack's CA.
    Https,
    /// AAVMF, on a machine with 64-bit ARM.
    Arm,
}

impl Firmware {
    /// The word that `rack.sh` uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Firmware::Bios => "bios",
            Firmware::Uefi => "uefi",
            Firmware::Http => "http",
            Firmware::Https => "https",
            Firmware::Arm => "arm",
        }
    }

    /// The line that the tiny image prints when it runs on this firmware.
    pub fn boots_as(self) -> &'static str {
        match self {
            Firmware::Bios => "DISK-BOOTED BIOS",
            Firmware::Uefi | Firmware::Http | Firmware::Https | Firmware::Arm => "DISK-BOOTED UEFI",
        }
    }
}

/// A machine in the output of `rack.sh json`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    pub name: String,
    pub firmware: Firmware,
    pub uuid: String,
    pub serial: String,
    pub mac: String,
    pub cpus: u64,
    pub memory_mib: u64,
    pub disk_serial: String,
    pub disk_bytes: u64,
    pub bmc: String,
    pub redfish: String,
    pub ipmi_port: u16,
    pub username: String,
    pub password: String,
    /// The certificate of the authority that signed the BMC's.
    pub ca: PathBuf,
    /// The disk, as a qcow2 file.
    pub disk: PathBuf,
    /// The file with all output of the serial console.
    pub console: PathBuf,
}

impl Machine {
    /// Returns the output of the serial console since the rack started.
    pub fn printed(&self) -> String {
        let printed = fs::read(&self.console).unwrap_or_default();
        String::from_utf8_lossy(&printed).into_owned()
    }

    /// Waits until the serial console has printed `line` `times` times.
    #[track_caller]
    pub fn prints(&self, line: &str, times: usize, timeout: Duration) {
        let what = format!("{} to print {line:?} {times} times", self.name);
        wait_for(&what, timeout, || (self.printed().matches(line).count() >= times).then_some(()));
    }

    /// Returns the first and the last MiB of the disk, which have the partition tables. The machine must be off.
    #[track_caller]
    pub fn edges(&self) -> Vec<u8> {
        let mut edges = self.read(0);
        edges.extend(self.read(self.disk_bytes / MIB - 1));
        edges
    }

    #[track_caller]
    fn read(&self, mebibyte: u64) -> Vec<u8> {
        let piece = self.disk.with_extension(format!("{mebibyte}.raw"));
        let read = Command::new("qemu-img")
            .args(["dd", "-f", "qcow2", "-O", "raw", "bs=1M", &format!("skip={mebibyte}")])
            .arg(format!("count={}", mebibyte + 1))
            .arg(format!("if={}", self.disk.display()))
            .arg(format!("of={}", piece.display()))
            .status()
            .expect("qemu-img can be started");
        assert!(read.success(), "qemu-img could not read {}", self.disk.display());
        let bytes = fs::read(&piece).expect("qemu-img wrote what it read");
        assert_eq!(bytes.len() as u64, MIB, "a short read of {}", self.disk.display());
        bytes
    }
}
