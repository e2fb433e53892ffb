//! Emulates whole machines in a process of its own: BMC, firmware, ramdisk, agent.

use std::net::SocketAddr;

use anyhow::Context;
use bmc_emulator::{BmcKind, BmcSpec, DiskSpec, Firmware, Mac, MachineSpec, NicSpec};
use machine_emulator::{AgentKind, Machine, Network, Rack, Speed};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::emulation::say;
use crate::racks;

/// How much faster than real hardware the self-test and the start of the kernel are: they take 30 ms and 20 ms.
const PACE: f64 = 100.0;

/// Emulates machines until the input ends. The first output line holds the machines as rows for `POST /bedplate/v1/racks`.
pub(crate) fn emulate(count: usize, dhcp: SocketAddr, tftp: SocketAddr) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let network = Network { dhcp, tftp: Some(tftp) };
    let machines = (0..count).map(|index| (whole(index), AgentKind::Light)).collect();
    let (machines, _rack) = runtime.block_on(async {
        let mut rack = Rack::start(network, Speed::times(PACE)).await?;
        let added = rack.add(machines).await?;
        // Dropping the rack would stop the machines.
        anyhow::Ok((added, rack))
    })?;
    let rows: Vec<Value> = (1..).zip(&machines).map(row).collect::<anyhow::Result<_>>()?;
    say(&serde_json::to_string(&rows)?)?;
    std::io::stdin().lines().for_each(drop);
    Ok(())
}

/// A machine with a disk and a network card: either UEFI with Redfish and a certificate of its own, or BIOS with IPMI.
fn whole(index: usize) -> MachineSpec {
    let bare = racks::machine(index);
    let [.., high, middle, low] = index.to_be_bytes();
    MachineSpec {
        firmware: match bare.bmc.kind {
            BmcKind::Redfish => Firmware::Uefi,
            BmcKind::Ipmi => Firmware::Bios,
        },
        nics: vec![NicSpec { mac: Mac([0x52, 0x54, 0, high, middle, low]), speed_mbps: 10_000 }],
        disks: vec![DiskSpec {
            name: "sda".to_owned(),
            serial: format!("D{index:07}"),
            size_bytes: 8 << 30,
            model: "Emulated Disk".to_owned(),
            rotational: false,
        }],
        bmc: BmcSpec { own_certificate: true, ..bare.bmc },
        ..bare
    }
}

/// The machine as `POST /bedplate/v1/racks` expects it, with its certificate pinned.
fn row((number, machine): (usize, &Machine)) -> anyhow::Result<Value> {
    let (driver, mut info) = racks::driver_info(machine.bmc())?;
    if let Some(pem) = &machine.bmc().certificate_pem {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).context("no certificate")?;
        let pin = format!("sha256:{}", hex::encode(Sha256::digest(&der)));
        info["redfish_verify_ca"] = pin.into();
    }
    let ports: Vec<String> = machine.spec().nics.iter().map(|nic| nic.mac.to_string()).collect();
    Ok(json!({
        "line": number, "name": machine.name(), "position": number, "ports": ports,
        "driver": driver, "driver_info": info,
    }))
}
