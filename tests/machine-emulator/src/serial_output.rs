//! The output of a machine at its serial port.

use bmc_emulator::{Firmware, MachineSpec};

use crate::event::{BootSource, Event};

/// Returns the line that a machine prints at `event`.
pub(crate) fn line(spec: &MachineSpec, event: &Event) -> String {
    let text = match event {
        Event::Started => {
            let firmware = match spec.firmware {
                Firmware::Bios => "BIOS",
                Firmware::Uefi => "UEFI",
            };
            let MachineSpec { manufacturer, model, serial, cpus, memory_mib, .. } = spec;
            format!(
                "\r\n{manufacturer} {model}, serial number {serial}\r\n\
                 {firmware}: {cpus} processors, {memory_mib} MiB of memory, self-test"
            )
        }
        Event::Off => "power is off".to_owned(),
        Event::Tries(BootSource::Disk) => "Booting from local disk...".to_owned(),
        Event::Tries(BootSource::Network) => ">>Start PXE over IPv4.".to_owned(),
        Event::Tries(BootSource::Http) => ">>Start HTTP Boot over IPv4.".to_owned(),
        Event::Tries(BootSource::Cd) => "Booting from virtual CD...".to_owned(),
        Event::CannotBoot(_, why) => format!("  Boot failed: {why}"),
        Event::Leased(address, _) => format!("  Station IP address is {address}"),
        Event::LoadedLoader(file, bytes) => format!("  {file}... ok, {bytes} bytes"),
        Event::RunsScript => "iPXE initialising devices... ok".to_owned(),
        Event::Echo(text) => text.clone(),
        Event::KernelRuns(kernel, ramdisk) => format!(
            "[    0.000000] Linux version 0.0 (emulated), {kernel} bytes\r\n\
             [    0.000000] console [ttyS0] enabled\r\n\
             [    0.412345] Trying to unpack rootfs image as initramfs, {ramdisk} bytes"
        ),
        Event::DiskRuns(image) => format!(
            "[    0.000000] Linux version 0.0 (emulated) of {image}\r\n\
             [    0.000000] console [ttyS0] enabled"
        ),
        Event::Computes(host) => format!("nova-compute[1]: host {host}"),
        Event::Hangs(why) => format!("*** {why}"),
        Event::Heartbeat => "agent[1]: reported".to_owned(),
        Event::SentInventory => "agent[1]: sent the inventory".to_owned(),
        Event::Begins(what) => format!("agent[1]: begins {what}"),
        Event::Did(what) => format!("agent[1]: did {what}"),
        Event::Failed(what, why) => format!("agent[1]: {what} failed: {why}"),
    };
    text + "\r\n"
}
