//! The owner of the objects of a turn.

use cluster_core::{ClusterSpec, Vm, tag, vm_tag};

/// The owner of the objects of a turn. Clusters and VMs have the same kinds of objects, which the same code creates.
#[derive(Clone, Copy)]
pub(crate) enum Owner<'a> {
    Cluster(&'a ClusterSpec<'a>),
    Vm(&'a Vm),
}

impl Owner<'_> {
    /// Returns the tag of the owner's objects.
    pub(crate) fn tag(self) -> String {
        match self {
            Owner::Cluster(spec) => tag(spec.cluster.id),
            Owner::Vm(vm) => vm_tag(vm.id),
        }
    }
}
