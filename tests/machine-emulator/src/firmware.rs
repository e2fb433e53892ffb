//! The firmware: chooses a boot source and boots from it.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use bmc_emulator::{BootDevice, Firmware};
use url::Url;

use crate::agent;
use crate::causes::chain;
use crate::cd;
use crate::compute_host;
use crate::disk::Content;
use crate::event::{BootSource, Event, Stage};
use crate::fetch;
use crate::handover::Handover;
use crate::ipxe::{self, Ended};
use crate::machine::Machine;
use crate::rack_context::{RackContext, Systems};
use crate::relay::Speaker;
use crate::saved_state::SavedActivity;
use crate::tftp;

/// The pause after all boot sources failed.
const REST: Duration = Duration::from_secs(30);
/// The minimum, so that a rack of machines that cannot boot does not keep the computer busy.
const LEAST_REST: Duration = Duration::from_millis(500);

/// Boots until the power goes off. If `before` is set, continues the activity of a machine that was on.
pub(crate) async fn run(
    machine: &Machine,
    world: &RackContext,
    before: Option<SavedActivity>,
) -> Infallible {
    let mut chosen = None;
    match before {
        Some(SavedActivity::Installed) => {
            // Returns only if the disk has changed since.
            if let Err(why) = boot_disk(machine, world).await {
                machine.tell(Event::CannotBoot(BootSource::Disk, why));
            }
        }
        Some(SavedActivity::Boots(choice)) => {
            machine.tell(Event::Started);
            machine.boots(choice.clone());
            machine.now(Stage::Booting);
            chosen = choice;
        }
        None => {}
    }
    tokio::time::sleep(world.pace.self_test()).await;
    if machine.faults().hang_in_firmware {
        return machine.hang("the firmware does not get through its self-test").await;
    }
    let chosen = chosen.unwrap_or_else(|| machine.chassis().take_boot_device());
    machine.boots(Some(chosen.clone()));
    let mut order = match chosen.device {
        Some(BootDevice::Pxe) => vec![BootSource::Network, BootSource::Disk],
        Some(BootDevice::Http) => vec![BootSource::Http, BootSource::Disk],
        Some(BootDevice::Cdrom | BootDevice::Usb | BootDevice::Floppy) => {
            vec![BootSource::Cd, BootSource::Disk]
        }
        Some(BootDevice::Disk) | None => own_order(machine),
        Some(BootDevice::Setup | BootDevice::Diagnostics) => {
            return machine.hang("the firmware shows its setup").await;
        }
    };
    loop {
        for source in &order {
            machine.tell(Event::Tries(*source));
            let booted = match source {
                BootSource::Disk => boot_disk(machine, world).await,
                BootSource::Network => boot_by_tftp(machine, world).await,
                BootSource::Http => boot_by_http(machine, world, chosen.http_uri.as_ref()).await,
                BootSource::Cd => cd::boot(machine, world).await,
            };
            match booted {
                Ok(handover) => return agent::run(machine, world, *source, handover).await,
                Err(why) => machine.tell(Event::CannotBoot(*source, why)),
            }
        }
        order = own_order(machine);
        tokio::time::sleep(world.pace.of(REST).max(LEAST_REST)).await;
    }
}

/// Returns the firmware's own boot order: the disk first; the CD only if the drive holds one.
fn own_order(machine: &Machine) -> Vec<BootSource> {
    let cd = machine.chassis().media().map(|_| BootSource::Cd);
    [Some(BootSource::Disk), cd, Some(BootSource::Network)].into_iter().flatten().collect()
}

/// Runs the system on the disk until the power goes off; returns only if nothing there boots.
async fn boot_disk(machine: &Machine, world: &RackContext) -> Result<Handover, String> {
    let bootable = machine.disks().into_iter().find(Content::is_bootable);
    let Some(Content::Image { name, .. }) = bootable else {
        return Err("no disk holds anything that boots".to_owned());
    };
    machine.tell(Event::DiskRuns(name));
    machine.now(Stage::Installed);
    match (world.systems, machine.config_drive()) {
        (Systems::ComputeHosts, Some(drive)) => {
            compute_host::run(machine, &world.http, &drive).await;
        }
        (Systems::ComputeHosts, None) | (Systems::Inert, _) => {}
    }
    std::future::pending().await
}

async fn boot_by_tftp(machine: &Machine, world: &RackContext) -> Result<Handover, String> {
    let lease = world.lease(machine, Speaker::Pxe).await?;
    let file = lease.boot_file.clone().ok_or("DHCP names nothing to boot")?;
    // Firmware runs only programs of its own kind.
    let is_efi = file.ends_with(".efi");
    if is_efi != (machine.chassis().boot_mode() == Firmware::Uefi) {
        return Err(format!("this firmware cannot run {file}"));
    }
    let bytes = tftp::read(own_address(lease.address), world.tftp(&lease), &file)
        .await
        .map_err(|error| chain(&error))?;
    machine.tell(Event::LoadedLoader(file, bytes));
    run_ipxe(machine, world, bytes).await
}

async fn boot_by_http(
    machine: &Machine,
    world: &RackContext,
    wanted: Option<&Url>,
) -> Result<Handover, String> {
    if machine.chassis().boot_mode() == Firmware::Bios {
        return Err("a BIOS knows no HTTP boot".to_owned());
    }
    let lease = world.lease(machine, Speaker::Http).await?;
    let url = match wanted {
        Some(url) => url.clone(),
        None => {
            let file = lease.boot_file.ok_or("DHCP names nothing to boot")?;
            Url::parse(&file).map_err(|_| format!("{file} is not a URL"))?
        }
    };
    let bytes = fetch::download(machine, &world.http, &url, |_| ()).await;
    let bytes = bytes.map_err(|error| chain(&error))?;
    machine.tell(Event::LoadedLoader(url.path().to_owned(), bytes));
    run_ipxe(machine, world, bytes).await
}

/// Treats the loaded file as iPXE, which asks DHCP again and runs the script from the answer.
async fn run_ipxe(machine: &Machine, world: &RackContext, bytes: u64) -> Result<Handover, String> {
    if bytes == 0 {
        return Err("the loader is empty".to_owned());
    }
    let lease = world.lease(machine, Speaker::Ipxe).await?;
    let script = lease.boot_file.ok_or("iPXE is given no script")?;
    let script = Url::parse(&script).map_err(|_| format!("iPXE cannot load {script}"))?;
    match ipxe::run(machine, world, lease.address, script).await {
        Ok(Ended::Kernel(handover)) => Ok(handover),
        Ok(Ended::Exit) => Err("iPXE left to the next boot option".to_owned()),
        Ok(Ended::LocalDisk) => boot_disk(machine, world).await,
        Err(error) => Err(chain(&error)),
    }
}

/// Returns the source address of a machine: its lease if this computer has that address.
fn own_address(lease: Ipv4Addr) -> SocketAddr {
    let ip = if lease.is_loopback() { lease } else { Ipv4Addr::LOCALHOST };
    (IpAddr::from(ip), 0).into()
}
