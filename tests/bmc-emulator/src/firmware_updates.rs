//! Updates of a machine's firmware: the tasks of its BMC (DSP0266 §12), and when each component runs the new version.

use std::time::Duration;

use crate::log::{Outcome, Protocol, Request};
use crate::machine::Machine;
use crate::updates::{Applies, UpdateState};

impl Machine {
    /// Begins an update that was accepted, and returns its id.
    pub(crate) fn begin_update(&self, component: &str, version: &str, applies: Applies) -> u32 {
        let id = self.chassis().updates.add(component, version);
        let (component, version) = (component.to_owned(), version.to_owned());
        let request = Request::UpdateFirmware { component, version };
        self.record(Protocol::Redfish, request, Outcome::Accepted);
        match self.faults().with(|faults| faults.update_time) {
            None => self.end_update(id, applies),
            Some(lasting) => {
                let machine = self.clone();
                tokio::spawn(async move {
                    tokio::time::sleep(lasting).await;
                    machine.end_update(id, applies);
                });
            }
        }
        id
    }

    /// The BMC has the whole image: it fails, applies the image, or keeps it for the next start of the machine.
    fn end_update(&self, id: u32, applies: Applies) {
        let (never, fails, restart) = self.faults().with(|faults| {
            (faults.updates_never_end, faults.updates_fail.clone(), faults.bmc_restart)
        });
        if never {
            return;
        }
        let mut chassis = self.chassis();
        let Some(update) = chassis.updates.find(id).cloned() else { return };
        if let Some(why) = fails {
            return chassis.updates.change(id, UpdateState::Failed(why));
        }
        if update.component == "bmc" {
            chassis.setup.firmware.insert(update.component, update.version);
            chassis.updates.change(id, UpdateState::Completed);
            drop(chassis);
            self.faults().restart_bmc(restart.unwrap_or(Duration::ZERO));
            return;
        }
        chassis.setup.staged_firmware.insert(update.component, update.version);
        let state = match applies {
            Applies::DuringTask => UpdateState::Starting,
            Applies::AfterTask => UpdateState::Completed,
        };
        chassis.updates.change(id, state);
    }
}
