//! The quota use of VMs and their snapshots.

use crate::{Amounts, FlavorSize, Resource};

use super::{Snapshot, Vm, VmActionKind};

impl Vm {
    /// Computes the quota use of the VM. During a resize the larger of both sizes counts.
    pub fn takes(&self) -> Amounts {
        let mut size = self.flavor.size;
        if let Some(VmActionKind::Resize(next)) = self.action.as_ref().map(|action| &action.kind) {
            let next = next.size;
            size = FlavorSize {
                vcpus: size.vcpus.max(next.vcpus),
                ram_mib: size.ram_mib.max(next.ram_mib),
                disk_gib: size.disk_gib.max(next.disk_gib),
                gpus: size.gpus.max(next.gpus),
            };
        }
        Amounts::from_iter([
            (Resource::Vms, 1),
            (Resource::Vcpus, size.vcpus),
            (Resource::RamMib, size.ram_mib),
            // Nova does not create the disk of the flavor for a server that boots from a volume.
            (Resource::DiskGib, self.root_volume.map_or(size.disk_gib, u64::from)),
            (Resource::Gpus, size.gpus),
            (Resource::FloatingIps, u64::from(self.public.is_some())),
        ])
    }
}

impl Snapshot {
    /// Computes the quota use of the snapshot: as much disk as the VM has. A snapshot that failed for good uses nothing.
    pub fn takes(&self) -> Amounts {
        let size = if self.is_failed_for_good() { 0 } else { self.size_gib };
        Amounts::from_iter([(Resource::DiskGib, size)])
    }
}
