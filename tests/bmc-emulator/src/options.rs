//! The command line.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use bmc_emulator::{BmcKind, BmcSpec, DiskSpec, Firmware, Mac, MachineSpec, NicSpec};
use clap::{Parser, ValueEnum};

/// Emulates BMCs of machines that do not exist, with Redfish and IPMI 2.0.
#[derive(Debug, Parser)]
#[command(version)]
pub(crate) struct Options {
    /// YAML or JSON file with a list of machines. Without it, the flags below describe one machine.
    #[arg(long, value_name = "FILE")]
    machines: Option<PathBuf>,
    /// Address of the control API (faults and logs), which needs no password.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) control: Option<SocketAddr>,
    /// File to write the certificates of HTTPS machines to.
    #[arg(long, value_name = "FILE")]
    pub(crate) certificate: Option<PathBuf>,
    /// How long a machine takes to shut down when asked to.
    #[arg(long, default_value_t = 0)]
    pub(crate) shutdown_millis: u64,
    #[command(flatten)]
    one: OneMachine,
}

/// The flags of one machine.
#[derive(Debug, clap::Args)]
struct OneMachine {
    /// The name of the machine.
    #[arg(long, default_value = "machine")]
    name: String,
    /// The protocol of the BMC at --listen.
    #[arg(long, value_enum, default_value_t = Kind::Redfish)]
    kind: Kind,
    /// Address of the BMC.
    #[arg(long, default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
    /// Address on which a Redfish BMC also serves IPMI.
    #[arg(long)]
    also_ipmi: Option<SocketAddr>,
    /// Serve Redfish over HTTPS.
    #[arg(long)]
    tls: bool,
    /// User name of the account.
    #[arg(long, default_value = "admin")]
    username: String,
    /// Password of the account.
    #[arg(long, env = "BMC_EMULATOR_PASSWORD", hide_env_values = true, default_value = "password")]
    password: String,
    /// Profile of the BMC.
    #[arg(long, default_value = "generic")]
    profile: String,
    /// Firmware of the machine.
    #[arg(long, value_enum, default_value_t = Boot::Uefi)]
    firmware: Boot,
    /// MAC address of a network card. Repeat for more cards.
    #[arg(long, default_value = "52:54:00:00:00:01")]
    mac: Vec<Mac>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Kind {
    Redfish,
    Ipmi,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Boot {
    Bios,
    Uefi,
}

impl Options {
    pub(crate) fn machines(&self) -> io::Result<Vec<MachineSpec>> {
        let Some(path) = &self.machines else { return Ok(vec![self.one.spec()]) };
        MachineSpec::read_all(path)
    }
}

impl OneMachine {
    fn spec(&self) -> MachineSpec {
        MachineSpec {
            name: self.name.clone(),
            uuid: uuid::Uuid::new_v4(),
            serial: "EMU0001".to_owned(),
            manufacturer: "Bedplate".to_owned(),
            model: "Emulated machine".to_owned(),
            firmware: match self.firmware {
                Boot::Bios => Firmware::Bios,
                Boot::Uefi => Firmware::Uefi,
            },
            nics: self.mac.iter().map(|mac| NicSpec { mac: *mac, speed_mbps: 10_000 }).collect(),
            disks: vec![DiskSpec {
                name: "sda".to_owned(),
                serial: "EMU0001-D1".to_owned(),
                size_bytes: 480_103_981_056,
                model: "Emulated SSD".to_owned(),
                rotational: false,
            }],
            cpus: 16,
            memory_mib: 65_536,
            bmc: BmcSpec {
                kind: match self.kind {
                    Kind::Redfish => BmcKind::Redfish,
                    Kind::Ipmi => BmcKind::Ipmi,
                },
                address: self.listen,
                tls: self.tls,
                username: self.username.clone(),
                password: self.password.clone(),
                profile: self.profile.clone(),
                also_ipmi: self.also_ipmi,
                own_certificate: false,
            },
        }
    }
}
