//! Runs `bmc-emulator` in the test's process, with as many machines as a test needs.

use std::net::{Ipv4Addr, SocketAddr};

use bmc_emulator::{BmcKind, BmcSpec, Firmware, Machine, MachineSpec, Served, serve};
use ipmi::{CipherSuite, Privilege, Target};
use uuid::Uuid;

use crate::endpoint::Endpoint;

/// Machines whose BMCs answer until this value is dropped.
pub(crate) struct Emulator {
    pub(crate) machines: Vec<Machine>,
    served: Served,
}

impl Emulator {
    /// Starts `count` machines of the family that `profile` names.
    pub(crate) async fn start(profile: &str, count: u128) -> Emulator {
        let machines: Vec<Machine> = (0..count).map(|n| Machine::new(spec(profile, n))).collect();
        let served = serve(machines.clone()).await.unwrap();
        Emulator { machines, served }
    }

    /// Returns the only machine.
    pub(crate) fn machine(&self) -> &Machine {
        &self.machines[0]
    }

    /// Returns address and account of the only machine's BMC.
    pub(crate) fn endpoint(&self, cipher_suite: Option<CipherSuite>) -> Endpoint {
        Endpoint {
            name: format!("bmc-emulator with {cipher_suite:?}"),
            address: self.addresses()[0],
            username: "admin".to_owned(),
            password: "secret".to_owned(),
            cipher_suite,
            privilege: Privilege::Operator,
        }
    }

    /// Returns address and account of every machine's BMC.
    pub(crate) fn targets(&self) -> impl Iterator<Item = Target> {
        let target = self.endpoint(None).target();
        self.addresses().into_iter().map(move |address| Target { address, ..target.clone() })
    }

    fn addresses(&self) -> Vec<SocketAddr> {
        self.served.machines.iter().map(|machine| machine.ipmi.unwrap()).collect()
    }
}

fn spec(profile: &str, number: u128) -> MachineSpec {
    MachineSpec {
        name: format!("r1u{number}"),
        uuid: Uuid::from_u128(number),
        serial: format!("SN{number:04}"),
        manufacturer: "Acme Servers".to_owned(),
        model: "R650 Clone".to_owned(),
        firmware: Firmware::Uefi,
        nics: Vec::new(),
        disks: Vec::new(),
        cpus: 8,
        memory_mib: 8192,
        bmc: BmcSpec {
            kind: BmcKind::Ipmi,
            address: (Ipv4Addr::LOCALHOST, 0).into(),
            tls: false,
            username: "admin".to_owned(),
            password: "secret".to_owned(),
            profile: profile.to_owned(),
            also_ipmi: None,
            own_certificate: false,
        },
    }
}
