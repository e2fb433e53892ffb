//! Changes of a machine's RAID volumes: the tasks of its BMC (DSP0266 §12), and when each change happens.

use crate::log::{Outcome, Protocol, Request};
use crate::machine::Machine;
use crate::updates::UpdateState;
use crate::volumes::{Volume, VolumeChange};

impl Machine {
    /// The RAID volumes of the machine.
    pub fn volumes(&self) -> Vec<Volume> {
        self.chassis().volumes.volumes.clone()
    }

    /// Begins a change that was accepted, and returns its id. The change waits for the next start of the machine if `waits`.
    pub(crate) fn begin_volume_change(&self, change: VolumeChange, waits: bool) -> u32 {
        let request = match &change {
            VolumeChange::Create(volume) => {
                let serial =
                    |at: &usize| self.spec().disks.get(*at).map(|disk| disk.serial.clone());
                Request::CreateVolume {
                    level: volume.level.clone(),
                    drives: volume.drives.iter().filter_map(serial).collect(),
                }
            }
            VolumeChange::Delete(id) => Request::DeleteVolume(id.clone()),
        };
        self.record(Protocol::Redfish, request, Outcome::Accepted);
        let id = self.chassis().volumes.add(change);
        match self.faults().with(|faults| faults.volume_time) {
            None => self.end_volume_change(id, waits),
            Some(lasting) => {
                let machine = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(lasting).await;
                    machine.end_volume_change(id, waits);
                });
            }
        }
        id
    }

    fn end_volume_change(&self, id: u32, waits: bool) {
        let faults =
            |faults: &crate::FaultSet| (faults.volumes_never_end, faults.volumes_fail.clone());
        let state = match self.faults().with(faults) {
            (true, _) => return,
            (false, Some(why)) => UpdateState::Failed(why),
            (false, None) if waits => UpdateState::Starting,
            (false, None) => UpdateState::Completed,
        };
        self.chassis().volumes.become_state(id, state);
    }
}
