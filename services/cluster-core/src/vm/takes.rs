//! What machines and their snapshots take of what their project and their owner may have.

use crate::{Amounts, FlavorSize, Resource};

use super::{ErrandKind, Snapshot, Vm};

impl Vm {
    /// What it takes. While it gets another size, the larger of both counts.
    pub fn takes(&self) -> Amounts {
        let mut size = self.flavor.size;
        if let Some(ErrandKind::Resize(next)) = self.errand.as_ref().map(|errand| &errand.kind) {
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
            // The flavor's own disk is not made where the machine boots from a volume.
            (Resource::DiskGib, self.root_volume.map_or(size.disk_gib, u64::from)),
            (Resource::Gpus, size.gpus),
            (Resource::FloatingIps, u64::from(self.public.is_some())),
        ])
    }
}

impl Snapshot {
    /// What it takes: as much disk as the machine has that it is of. One that could not be made takes nothing.
    pub fn takes(&self) -> Amounts {
        let size = if self.is_failed_for_good() { 0 } else { self.size_gib };
        Amounts::from_iter([(Resource::DiskGib, size)])
    }
}
