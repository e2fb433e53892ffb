//! Emulates BMCs without machines, in a process of its own.

use bmc_emulator::{
    BmcKind, BmcSpec, Firmware, Machine, MachineSpec, ReportedPower, ServedMachine,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::emulation::{Emulation, say};

const USERNAME: &str = "admin";
const PASSWORD: &str = "password";

/// The first line that the process prints, once its BMCs answer.
#[derive(Serialize, Deserialize)]
struct Hello {
    /// The certificates of the Redfish services, as PEM.
    authorities: String,
    /// `driver` and `driver_info` of each machine's node.
    nodes: Vec<(String, Value)>,
}

/// A process that emulates BMCs. Dropping the value stops it.
pub(crate) struct Racks {
    /// The certificates to trust, as PEM.
    pub(crate) authorities: String,
    /// `driver` and `driver_info` of each machine's node.
    pub(crate) nodes: Vec<(String, Value)>,
    pub(crate) pid: u32,
    emulation: Emulation,
}

impl Racks {
    /// Starts the process and waits until all its BMCs answer.
    pub(crate) async fn start(count: usize) -> anyhow::Result<Racks> {
        let arguments = ["racks".to_owned(), count.to_string()];
        let (emulation, hello) = Emulation::start(&arguments).await?;
        let Hello { authorities, nodes } = serde_json::from_str(&hello)?;
        Ok(Racks { authorities, nodes, pid: emulation.pid, emulation })
    }

    /// Makes all BMCs report this power state from now on.
    pub(crate) async fn power(&mut self, power: ReportedPower) -> anyhow::Result<()> {
        self.emulation.tell(&serde_json::to_string(&power)?).await
    }
}

/// Emulates BMCs until the input ends. Runs in the emulating process.
pub(crate) fn serve(count: usize) -> anyhow::Result<()> {
    let machines: Vec<Machine> = (0..count).map(|index| Machine::new(machine(index))).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(bmc_emulator::serve(machines.clone()))?;
    let nodes = served.machines.iter().map(driver_info).collect::<anyhow::Result<_>>()?;
    let hello = Hello { authorities: served.certificate_pem.clone(), nodes };

    say(&serde_json::to_string(&hello)?)?;
    // The BMCs run on threads of the runtime. This thread reads the commands of the bench.
    for line in std::io::stdin().lines() {
        let line = line?;
        let power: ReportedPower = serde_json::from_str(&line)?;
        for machine in &machines {
            machine.faults().update(|faults| faults.reported_power = Some(power));
        }
        say(&line)?;
    }
    Ok(())
}

/// `driver` and `driver_info` for the node of this machine.
pub(crate) fn driver_info(at: &ServedMachine) -> anyhow::Result<(String, Value)> {
    match (at.redfish, at.ipmi) {
        (Some(address), _) => {
            let info = json!({
                "redfish_address": format!("https://{address}"),
                "redfish_username": USERNAME,
                "redfish_password": PASSWORD,
            });
            Ok(("redfish".to_owned(), info))
        }
        (None, Some(address)) => {
            let info = json!({
                "ipmi_address": address.ip(),
                "ipmi_port": address.port(),
                "ipmi_username": USERNAME,
                "ipmi_password": PASSWORD,
            });
            Ok(("ipmi".to_owned(), info))
        }
        (None, None) => Err(anyhow::anyhow!("{} has no BMC", at.name)),
    }
}

/// The machine of this index: even ones have Redfish over HTTPS, odd ones IPMI.
pub(crate) fn machine(index: usize) -> MachineSpec {
    let kind = if index.is_multiple_of(2) { BmcKind::Redfish } else { BmcKind::Ipmi };
    // BMCs have addresses of their own: a client resumes a TLS session with the address that it was made with.
    let [.., high, middle, low] = index.to_be_bytes();
    let mut id = [0; 16];
    id[8..].copy_from_slice(&(index as u64 + 1).to_be_bytes());
    MachineSpec {
        name: format!("machine-{index}"),
        uuid: uuid::Uuid::from_bytes(id),
        serial: format!("S{index:07}"),
        manufacturer: "Bedplate".to_owned(),
        model: "Bench".to_owned(),
        firmware: Firmware::Uefi,
        nics: Vec::new(),
        disks: Vec::new(),
        cpus: 8,
        memory_mib: 32768,
        bmc: BmcSpec {
            kind,
            address: ([127, high.saturating_add(1), middle, low], 0).into(),
            tls: true,
            username: USERNAME.to_owned(),
            password: PASSWORD.to_owned(),
            profile: "generic".to_owned(),
            also_ipmi: None,
            own_certificate: false,
        },
    }
}
