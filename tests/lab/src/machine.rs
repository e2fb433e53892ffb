//! Machines to put into the rack, and machines that are in it.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};

use bmc_emulator::{BmcKind, BmcSpec, DiskSpec, Firmware, Mac, MachineSpec, NicSpec};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// No two machines of a process have the same address.
static MACHINES: AtomicU32 = AtomicU32::new(1);

const USER: &str = "admin";
const PASSWORD: &str = left::canary::BMC;

/// A machine to put into the rack, and how it is to be enrolled.
#[derive(Clone, Debug)]
pub struct Machine {
    /// What it is made of.
    pub spec: MachineSpec,
    /// `boot_interface`, if it is not to be the driver's default.
    pub boot: Option<&'static str>,
    /// `ipmi_cipher_suite`, if it is not for the driver to choose.
    pub cipher_suite: Option<u8>,
    /// What runs in its ramdisk.
    pub agent: AgentOf,
}

/// What runs in a machine's ramdisk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentOf {
    /// The emulator's agent.
    TheEmulator,
    /// Our own, as a child process on a disk that is a file.
    TheProject,
}

impl Machine {
    /// A BIOS machine with a Redfish BMC over HTTPS.
    pub fn redfish(name: &str) -> Machine {
        Machine::new(name, BmcKind::Redfish)
    }

    /// A BIOS machine with an IPMI BMC.
    pub fn ipmi(name: &str) -> Machine {
        Machine::new(name, BmcKind::Ipmi)
    }

    /// The same with UEFI.
    pub fn uefi(mut self) -> Machine {
        self.spec.firmware = Firmware::Uefi;
        self
    }

    /// The same, booted in this way.
    pub fn boot(self, interface: &'static str) -> Machine {
        Machine { boot: Some(interface), ..self }
    }

    /// The same, spoken to by this cipher suite.
    pub fn suite(self, suite: u8) -> Machine {
        Machine { cipher_suite: Some(suite), ..self }
    }

    /// The same with our own agent, and disks just large enough for a small image.
    pub fn with_our_agent(self) -> Machine {
        Machine { agent: AgentOf::TheProject, ..self }
    }

    /// The same over plain HTTP, which spares a computer thousands of handshakes.
    pub fn without_tls(mut self) -> Machine {
        self.spec.bmc.tls = false;
        self
    }

    fn new(name: &str, kind: BmcKind) -> Machine {
        let number = MACHINES.fetch_add(1, Ordering::Relaxed);
        let [_, high, middle, low] = number.to_be_bytes();
        let spec = MachineSpec {
            name: name.to_owned(),
            uuid: Uuid::new_v4(),
            serial: format!("LAB{number:05}"),
            manufacturer: "Bedplate".to_owned(),
            model: "Emulated Server".to_owned(),
            firmware: Firmware::Bios,
            nics: vec![NicSpec {
                mac: Mac([0x52, 0x54, 0, high, middle, low]),
                speed_mbps: 10_000,
            }],
            disks: vec![DiskSpec {
                name: "sda".to_owned(),
                serial: format!("DISK{number:05}"),
                size_bytes: 8 << 30,
                model: "Emulated Disk".to_owned(),
                rotational: false,
            }],
            cpus: 8,
            memory_mib: 32 << 10,
            bmc: BmcSpec {
                kind,
                address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
                tls: kind == BmcKind::Redfish,
                username: USER.to_owned(),
                password: PASSWORD.to_owned(),
                profile: "generic".to_owned(),
                also_ipmi: None,
                own_certificate: false,
            },
        };
        Machine { spec, boot: None, cipher_suite: None, agent: AgentOf::TheEmulator }
    }
}

/// A machine in the rack.
#[derive(Clone, Debug)]
pub struct Placed {
    machine: machine_emulator::Machine,
    boot: Option<&'static str>,
    cipher_suite: Option<u8>,
}

impl Placed {
    pub(crate) fn new(wanted: &Machine, machine: machine_emulator::Machine) -> Placed {
        Placed { machine, boot: wanted.boot, cipher_suite: wanted.cipher_suite }
    }

    /// The name of its driver.
    pub fn driver(&self) -> &'static str {
        match self.spec().bmc.kind {
            BmcKind::Redfish => "redfish",
            BmcKind::Ipmi => "ipmi",
        }
    }

    /// How its BMC is reached, in the API's words; its certificate, if it has one, is pinned.
    pub fn driver_info(&self) -> Value {
        let bmc = self.bmc();
        let address = bmc.address().expect("every BMC listens");
        match (self.spec().bmc.kind, &bmc.certificate_pem) {
            (BmcKind::Ipmi, _) => {
                let mut info = json!({
                    "ipmi_address": address.ip(), "ipmi_port": address.port(), "ipmi_username": USER,
                    "ipmi_password": PASSWORD,
                });
                if let Some(suite) = self.cipher_suite {
                    info["ipmi_cipher_suite"] = suite.into();
                }
                info
            }
            (BmcKind::Redfish, None) => json!({
                "redfish_address": format!("http://{address}"), "redfish_username": USER, "redfish_password": PASSWORD,
            }),
            (BmcKind::Redfish, Some(pem)) => {
                let der =
                    CertificateDer::from_pem_slice(pem.as_bytes()).expect("it is a certificate");
                let pin = format!("sha256:{}", hex::encode(Sha256::digest(&der)));
                json!({
                    "redfish_address": format!("https://{address}"), "redfish_username": USER,
                    "redfish_password": PASSWORD, "redfish_verify_ca": pin,
                })
            }
        }
    }

    /// The machine in the words of `POST /v1/nodes`.
    pub fn node(&self) -> Value {
        let mut node = json!({
            "name": self.name(), "driver": self.driver(), "driver_info": self.driver_info(),
        });
        if let Some(boot) = self.boot {
            node["boot_interface"] = boot.into();
        }
        node
    }

    /// The machine in the words of `POST /bedplate/v1/racks`, as written on `line`.
    pub fn row(&self, line: u64) -> Value {
        let mut row = self.node();
        row["line"] = line.into();
        row["position"] = line.into();
        let macs = self.spec().nics.iter().map(|nic| nic.mac.to_string());
        row["ports"] = macs.collect();
        row
    }
}

impl Deref for Placed {
    type Target = machine_emulator::Machine;

    fn deref(&self) -> &machine_emulator::Machine {
        &self.machine
    }
}
