//! Changes of VMs by requests.

use cluster_core::{Vm, VmEvent};
use cluster_store::VmChange;

use crate::change::retry_stale;
use crate::error::Result;
use crate::request::Request;

impl Request {
    /// Reads a VM, lets `decide` change it, writes the change and wakes the conductor.
    ///
    /// Starts again if someone else changed the VM meanwhile. Refuses a change that exceeds the quota or the maximum lease of the VM's
    /// project or owner.
    pub(crate) async fn change_vm(
        &self,
        ident: &str,
        decide: impl Fn(&Vm) -> Result<(Vm, VmEvent)>,
    ) -> Result<Vm> {
        let written = retry_stale(|| async {
            let vm = self.machine(ident).await?;
            let (vm, event) = decide(&vm)?;
            let vm = Vm { trace: openstack_api::current_trace(), ..vm };
            let change = VmChange { events: vec![event], ..VmChange::of(vm) };
            Ok(self.app.store.change_vm_within(&change, &self.app.settings.quotas).await?)
        });
        let written = written.await?;
        self.app.conductor.wake_vm(written.id);
        Ok(written)
    }
}
