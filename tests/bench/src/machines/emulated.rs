//! Emulates whole machines in a process of its own: BMC, firmware, ramdisk, agent.

mod watch;

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use bmc_emulator::{BmcKind, BmcSpec, DiskSpec, Firmware, Mac, MachineSpec, NicSpec};
use clap::ValueEnum;
use machine_emulator::{AgentKind, Machine, Network, Rack, Speed};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::runtime::Runtime;

pub(crate) use self::watch::{Outcome, TruePower};
use self::watch::{Watched, answer};
use crate::emulation::{Emulation, say};
use crate::{process, racks};

/// How much faster than real hardware the self-test and the start of the kernel are: they take 30 ms and 20 ms.
const FAST: f64 = 100.0;
/// How long a BMC at the real pace takes for each answer.
const BMC_ANSWER: Duration = Duration::from_millis(200);
/// The profile of the BMCs at the real pace.
const FOUR_SESSIONS: &str = "four-sessions";

/// The speed of the emulated machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MachinePace {
    /// 100 times as fast as real machines, with BMCs that answer at once.
    Fast,
    /// A self-test of 60 s, disks that write 500 MB/s, BMCs that need 200 ms for an answer and have four session slots.
    Real,
    /// The BMCs of `real`, and a self-test of 3 s: tries the measurement in a minute or two.
    Trial,
}

impl MachinePace {
    /// Whether the BMCs are slow and have few sessions, as those of servers.
    fn has_slow_bmcs(self) -> bool {
        match self {
            MachinePace::Fast => false,
            MachinePace::Real | MachinePace::Trial => true,
        }
    }
}

/// The machines to emulate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MachineSet {
    pub(crate) count: usize,
    /// How many more BMCs there are, of machines that stay off; the power that they report changes now and then.
    pub(crate) witnesses: usize,
    pub(crate) pace: MachinePace,
}

/// The first line that the process prints.
#[derive(Serialize, Deserialize)]
pub(crate) struct Hello {
    /// The machines as rows for `POST /bedplate/v1/racks`.
    pub(crate) rows: Vec<Value>,
    /// `driver` and `driver_info` of the witnesses' nodes.
    pub(crate) witnesses: Vec<(String, Value)>,
}

impl MachineSet {
    /// Starts the process that emulates the machines.
    pub(crate) async fn start(
        self,
        dhcp: SocketAddr,
        tftp: SocketAddr,
    ) -> anyhow::Result<(Emulation, Hello)> {
        let pace = self.pace.to_possible_value().context("a pace has a name")?;
        let arguments = [
            "whole-machines".to_owned(),
            self.count.to_string(),
            self.witnesses.to_string(),
            pace.get_name().to_owned(),
            dhcp.to_string(),
            tftp.to_string(),
        ];
        let (emulation, hello) = Emulation::start(&arguments).await?;
        Ok((emulation, serde_json::from_str(&hello)?))
    }
}

/// Emulates machines until the input ends. Each input line is a question, which is answered with one line.
pub(crate) fn emulate(set: MachineSet, network: Network) -> anyhow::Result<()> {
    if set.pace.has_slow_bmcs() {
        // The machines wait, and the measured service works.
        process::yield_to_others()?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // Dropping the rack would stop the machines.
    let (machines, _rack) = runtime.block_on(start(set, network))?;
    let (whole, witnesses) = machines.split_at(set.count);
    let rows = (1..).zip(whole).map(row).collect::<anyhow::Result<_>>()?;
    let hello = Hello {
        rows,
        witnesses: witnesses.iter().map(pinned_info).collect::<anyhow::Result<_>>()?,
    };
    let watched = watch_all(&runtime, &machines, set);
    say(&serde_json::to_string(&hello)?)?;
    for line in std::io::stdin().lines() {
        say(&answer(&line?, &watched, &machines)?)?;
    }
    Ok(())
}

async fn start(set: MachineSet, network: Network) -> anyhow::Result<(Vec<Machine>, Rack)> {
    let speed = match set.pace {
        MachinePace::Fast => Speed::times(FAST),
        MachinePace::Real => Speed::real(),
        MachinePace::Trial => Speed::times(1.0),
    };
    let mut rack = Rack::start(network, speed).await?;
    if set.pace.has_slow_bmcs() {
        rack.spare_processors()?;
    }
    let specs =
        (0..set.count + set.witnesses).map(|index| (whole(index, set.pace), AgentKind::Light));
    let machines = rack.add(specs.collect()).await?;
    if set.pace.has_slow_bmcs() {
        for machine in &machines {
            machine.chassis().faults().update(|faults| faults.slow = Some(BMC_ANSWER));
        }
    }
    Ok((machines, rack))
}

/// Watches the machines with slow BMCs. The bench asks about no others.
fn watch_all(runtime: &Runtime, machines: &[Machine], set: MachineSet) -> Watched {
    let watched = Watched::all_off(machines.len());
    if set.pace.has_slow_bmcs() {
        for (index, machine) in machines.iter().enumerate().take(set.count) {
            runtime.spawn(watch::follow(machine.clone(), index, watched.clone()));
        }
        let witnesses = machines.iter().cloned().enumerate().skip(set.count);
        runtime.spawn(watch::switch_in_turn(witnesses.collect(), watched.clone()));
    }
    watched
}

/// A machine with a disk and a network card: either UEFI with Redfish, or BIOS with IPMI.
fn whole(index: usize, pace: MachinePace) -> MachineSpec {
    let bare = racks::machine(index);
    let [.., high, middle, low] = index.to_be_bytes();
    let bmc = match pace {
        MachinePace::Fast => BmcSpec { own_certificate: true, ..bare.bmc },
        // One certificate for all: making thousands is work that no real BMC has at this time.
        MachinePace::Real | MachinePace::Trial => {
            BmcSpec { profile: FOUR_SESSIONS.to_owned(), ..bare.bmc }
        }
    };
    MachineSpec {
        firmware: match bmc.kind {
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
        bmc,
        ..bare
    }
}

/// The machine as `POST /bedplate/v1/racks` expects it.
fn row((number, machine): (usize, &Machine)) -> anyhow::Result<Value> {
    let (driver, info) = pinned_info(machine)?;
    let ports: Vec<String> = machine.spec().nics.iter().map(|nic| nic.mac.to_string()).collect();
    Ok(json!({
        "line": number, "name": machine.name(), "position": number, "ports": ports,
        "driver": driver, "driver_info": info,
    }))
}

/// `driver` and `driver_info` of the machine's node, with the certificate of its BMC pinned.
fn pinned_info(machine: &Machine) -> anyhow::Result<(String, Value)> {
    let (driver, mut info) = racks::driver_info(machine.bmc())?;
    if let Some(pem) = &machine.bmc().certificate_pem {
        let der = CertificateDer::from_pem_slice(pem.as_bytes()).context("no certificate")?;
        let pin = format!("sha256:{}", hex::encode(Sha256::digest(&der)));
        info["redfish_verify_ca"] = pin.into();
    }
    Ok((driver, info))
}
