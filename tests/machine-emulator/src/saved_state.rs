//! Stores machines in a file, so that they continue after a restart of the program.
//!
//! A system that ran from a disk continues. A machine that was booting starts that boot again, because its memory is lost, as after a short
//! power cut. The file survives the end of the program, not of the computer: nothing is synced to disk.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use bmc_emulator::BootChoice;
use serde::{Deserialize, Serialize};
use tracing::error;

use crate::disk::Content;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredMachine {
    pub(crate) chassis: bmc_emulator::PersistedState,
    pub(crate) before: SavedActivity,
    pub(crate) disks: Vec<KeptDisk>,
}

/// The stored state of a disk.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeptDisk {
    pub(crate) content: Content,
    pub(crate) drive: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SavedActivity {
    /// The machine ran the system on its disk.
    Installed,
    /// The machine was booting or ran a ramdisk; the boot source, if the firmware had chosen one.
    Boots(Option<BootChoice>),
}

#[derive(Debug)]
pub(crate) struct StateFile {
    path: PathBuf,
    machines: Mutex<BTreeMap<String, StoredMachine>>,
}

impl StateFile {
    /// Reads the file; a missing file is empty.
    pub(crate) fn open(path: PathBuf) -> io::Result<StateFile> {
        let machines = match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeMap::new(),
            read => serde_json::from_slice(&read?)?,
        };
        Ok(StateFile { path, machines: Mutex::new(machines) })
    }

    pub(crate) fn find(&self, machine: &str) -> Option<StoredMachine> {
        self.machines.lock().unwrap_or_else(PoisonError::into_inner).get(machine).cloned()
    }

    pub(crate) fn keep(&self, machine: &str, kept: StoredMachine) {
        let mut machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        machines.insert(machine.to_owned(), kept);
        if let Err(error) = self.write(&machines) {
            error!(%error, "cannot keep the machines in {}", self.path.display());
        }
    }

    /// The file is replaced atomically and readable only by its owner, because config drives hold passwords.
    fn write(&self, machines: &BTreeMap<String, StoredMachine>) -> io::Result<()> {
        let folder = self.path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut file = tempfile::NamedTempFile::new_in(folder.unwrap_or(".".as_ref()))?;
        file.write_all(&serde_json::to_vec(machines)?)?;
        file.persist(&self.path)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;
    use crate::{AgentKind, Event, Network, Rack, Speed, Stage};

    const SPEC: &str = r#"{
        "name": "m1", "uuid": "3f2a5b60-0000-4000-8000-000000000001", "serial": "S1", "manufacturer": "Some", "model": "One", "firmware": "bios",
        "nics": [{"mac": "52:54:00:de:00:01", "speed_mbps": 1000}],
        "disks": [{"name": "sda", "serial": "D1", "size_bytes": 1073741824, "model": "Disk", "rotational": false}],
        "cpus": 1, "memory_mib": 1024,
        "bmc": {"kind": "redfish", "address": "127.0.0.1:0", "tls": false, "username": "admin", "password": "secret", "profile": "generic"}
    }"#;

    #[tokio::test]
    async fn stored_machines_keep_running_or_stay_off() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("machines.json");
        let rack = async || {
            let dhcp = SocketAddr::from(([127, 0, 0, 1], 9));
            let network = Network { dhcp, tftp: None };
            let mut rack = Rack::start(network, Speed::default()).await.unwrap();
            rack.keep_in(path.clone()).unwrap();
            let spec = serde_json::from_str(SPEC).unwrap();
            rack.add(vec![(spec, AgentKind::Light)]).await.unwrap();
            rack
        };
        let disk = KeptDisk { content: Content::leftover(), drive: Some("drive".to_owned()) };
        let mut chassis = bmc_emulator::PersistedState::default();
        chassis.on = true;
        let kept = StoredMachine { chassis, before: SavedActivity::Installed, disks: vec![disk] };
        StateFile::open(path.clone()).unwrap().keep("m1", kept);

        let first = rack().await;
        let machine = first.machine("m1").unwrap().clone();
        machine.stage().wait_for(|stage| *stage == Stage::Installed).await.unwrap();
        assert!(!machine.events().contains(&Event::Started), "{:?}", machine.events());
        assert_eq!(machine.disks(), [Content::leftover()]);
        machine.chassis().guest_power_off();
        machine.stage().wait_for(|stage| *stage == Stage::Off).await.unwrap();
        drop(first);

        let second = StateFile::open(path.clone()).unwrap().find("m1").unwrap();
        assert!(!second.chassis.on);
        assert_eq!(second.disks[0].drive.as_deref(), Some("drive"));
        let again = rack().await;
        assert_eq!(*again.machine("m1").unwrap().stage().borrow(), Stage::Off);
    }
}
