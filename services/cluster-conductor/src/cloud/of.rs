//! The owner of the objects of a turn.

use cluster_core::{ClusterSpec, Vm, tag, vm_tag};

/// The owner of the objects of a turn. Clusters and VMs have the same kinds of objects, which the same code creates.
#[derive(Clone, Copy)]
pub(crate) enum Of<'a> {
    Cluster(&'a ClusterSpec<'a>),
    Vm(&'a Vm),
}

impl Of<'_> {
    /// Returns the tag of the owner's objects.
    pub(crate) fn tag(self) -> String {
        match self {
            Of::Cluster(spec) => tag(spec.cluster.id),
            Of::Vm(vm) => vm_tag(vm.id),
        }
    }
}
