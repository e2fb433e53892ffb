//! Changes of VMs by requests.

use cluster_core::{Vm, VmEvent};
use cluster_store::VmChange;
use openstack_api::Caller;

use crate::app::App;
use crate::change::retry_stale;
use crate::error::Error;

impl App {
    /// Reads a VM, lets `decide` change it, writes the change and wakes the conductor.
    ///
    /// Starts again if someone else changed the VM meanwhile. Refuses a change that exceeds the quota or the maximum lease of the VM's
    /// project or owner.
    pub(crate) async fn change_vm(
        &self,
        caller: &Caller,
        ident: &str,
        decide: impl Fn(&Vm) -> Result<(Vm, VmEvent), Error>,
    ) -> Result<Vm, Error> {
        let written = retry_stale(|| async {
            let vm = self.machine(caller, ident).await?;
            let (vm, event) = decide(&vm)?;
            let change = VmChange { events: vec![event], ..VmChange::of(vm) };
            Ok(self.store.change_vm_within(&change, &self.settings.quotas).await?)
        });
        let written = written.await?;
        self.conductor.wake_vm(written.id);
        Ok(written)
    }
}
