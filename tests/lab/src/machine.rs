//! Machines to put into the rack, and machines in the rack.

use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};

use bmc_emulator::{BmcKind, BmcSpec, DiskSpec, Firmware, Mac, MachineSpec, NicSpec};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// Gives each machine of the process a MAC address of its own.
static MACHINES: AtomicU32 = AtomicU32::new(1);

const USER: &str = "admin";
const PASSWORD: &str = left::canary::BMC;

/// A machine to put into the rack, and the settings for its enrolment.
#[derive(Clone, Debug)]
pub struct Machine {
    pub spec: MachineSpec,
    /// `boot_interface`; `None` selects the default of the driver.
    pub boot: Option<&'static str>,
    /// `ipmi_cipher_suite`; `None` lets the driver choose.
    pub cipher_suite: Option<u8>,
    pub agent: AgentChoice,
    /// The driver of the node; `None` for the one of the protocol.
    pub driver: Option<&'static str>,
}

/// The agent that runs in the ramdisk of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentChoice {
    TheEmulator,
    /// The `ramdisk-agent` of this project, as a child process with files as disks.
    TheProject,
}

impl Machine {
    /// A machine with BIOS and a Redfish BMC over HTTPS.
    pub fn redfish(name: &str) -> Machine {
        Machine::new(name, BmcKind::Redfish)
    }

    /// A machine with BIOS and an IPMI BMC.
    pub fn ipmi(name: &str) -> Machine {
        Machine::new(name, BmcKind::Ipmi)
    }

    /// A machine of Dell, for the driver `idrac`.
    pub fn idrac(name: &str) -> Machine {
        let mut machine = Machine::redfish(name);
        machine.spec.bmc.profile = "dell-idrac".to_owned();
        Machine { driver: Some("idrac"), ..machine }
    }

    /// Changes the firmware to UEFI.
    pub fn uefi(mut self) -> Machine {
        self.spec.firmware = Firmware::Uefi;
        self
    }

    /// Sets the boot interface.
    pub fn boot(self, interface: &'static str) -> Machine {
        Machine { boot: Some(interface), ..self }
    }

    /// Sets the IPMI cipher suite.
    pub fn suite(self, suite: u8) -> Machine {
        Machine { cipher_suite: Some(suite), ..self }
    }

    /// Uses the project's own agent, with disks just large enough for a small image.
    pub fn with_our_agent(self) -> Machine {
        Machine { agent: AgentChoice::TheProject, ..self }
    }

    /// Uses plain HTTP for the BMC, which saves thousands of TLS handshakes.
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
        let agent = AgentChoice::TheEmulator;
        Machine { spec, boot: None, cipher_suite: None, agent, driver: None }
    }
}

/// A machine in the rack.
#[derive(Clone, Debug)]
pub struct RackedMachine {
    machine: machine_emulator::Machine,
    boot: Option<&'static str>,
    cipher_suite: Option<u8>,
    driver: Option<&'static str>,
}

impl RackedMachine {
    /// A machine that was put into a rack.
    pub fn new(wanted: &Machine, machine: machine_emulator::Machine) -> RackedMachine {
        let Machine { boot, cipher_suite, driver, .. } = *wanted;
        RackedMachine { machine, boot, cipher_suite, driver }
    }

    /// The driver that a node of this machine uses.
    pub fn driver(&self) -> &'static str {
        self.driver.unwrap_or(match self.spec().bmc.kind {
            BmcKind::Redfish => "redfish",
            BmcKind::Ipmi => "ipmi",
        })
    }

    /// The `driver_info` of the machine; the certificate of its BMC, if any, is pinned.
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

    /// The body of `POST /v1/nodes` for this machine.
    pub fn node(&self) -> Value {
        let mut node = json!({
            "name": self.name(), "driver": self.driver(), "driver_info": self.driver_info(),
        });
        if let Some(boot) = self.boot {
            node["boot_interface"] = boot.into();
        }
        node
    }

    /// The entry for this machine in `POST /bedplate/v1/racks`, as written on `line`.
    pub fn row(&self, line: u64) -> Value {
        let mut row = self.node();
        row["line"] = line.into();
        row["position"] = line.into();
        let macs = self.spec().nics.iter().map(|nic| nic.mac.to_string());
        row["ports"] = macs.collect();
        row
    }
}

impl Deref for RackedMachine {
    type Target = machine_emulator::Machine;

    fn deref(&self) -> &machine_emulator::Machine {
        &self.machine
    }
}
